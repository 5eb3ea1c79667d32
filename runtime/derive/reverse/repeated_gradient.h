// The gradient of an operator that runs its body again and again, Scan and Loop: a Scan from the last iteration to the first.
//
// Each of its iterations takes what the forward's began with (states, slices, captures), computes again what it needs of it, and hands the
// gradients of the states on to the iteration before. The forward stacks its states for that, as further scan outputs. Gradients of
// slices are scan outputs, those of captures are added up in states. What would not be the same when it is computed again is stacked too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "derive/node_gradient.h"

namespace heddle {

// What of the ports of a node, and of its body, is what. Inputs of both: `own`, states, slices, captures. The node's outputs: states, scan
// outputs; the body's: `own_outputs`, states, scan outputs.
struct RepeatedPorts {
  size_t own = 0, own_outputs = 0;
  size_t states = 0, slices = 0, captures = 0;
  std::vector<int64_t> input_axes, input_directions;    // of slices
  std::vector<int64_t> output_axes, output_directions;  // of scan outputs
  bool counts = false;                                  // input 0 of the body is the number of the iteration, input 1 always true: a loop
  std::string output_axes_attribute, output_directions_attribute;  // where the node has them; empty: it can have none

  size_t first_slice() const { return own + states; }
  size_t first_capture() const { return own + states + slices; }
};

// `bindings`: what the body is run with.
Result<std::vector<GradientPart>> repeated_gradient(const NodeGradientCall& call, const RepeatedPorts& ports,
                                                    const std::function<std::vector<InputBinding>(const TypedNet& around)>& bindings,
                                                    Emitter& emitter);

}  // namespace heddle
