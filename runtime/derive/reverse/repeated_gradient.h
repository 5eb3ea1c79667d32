// The gradient of an operator that runs its body repeatedly, Scan and Loop: a Scan from the last iteration to the first.
//
// Each of its iterations takes the values that the forward's began with (states, slices, captures), computes again what it needs of it, and
// passes the gradients of the states to the iteration before. The forward stacks its states for that, as further scan outputs. Gradients of
// slices are scan outputs, those of captures are added up in states. Values that would differ when computed again are stacked too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "derive/node_gradient.h"

namespace heddle {

// The roles of the ports of a node and of its body. Inputs of both: `own`, states, slices, captures. The node's outputs: states, scan
// outputs; the body's: `own_outputs`, states, scan outputs.
struct RepeatedPorts {
  size_t own = 0, own_outputs = 0;
  size_t states = 0, slices = 0, captures = 0;
  std::vector<int64_t> input_axes, input_directions;    // of slices
  std::vector<int64_t> output_axes, output_directions;  // of scan outputs
  bool counts = false;                                  // a loop: input 0 of the body is the iteration number, input 1 always true
  std::string output_axes_attribute, output_directions_attribute;  // attributes of the node with them; empty: it can have none

  size_t first_slice() const { return own + states; }
  size_t first_capture() const { return own + states + slices; }
};

// `bindings`: the inputs that the body is run with.
Result<std::vector<GradientPart>> repeated_gradient(const NodeGradientCall& call, const RepeatedPorts& ports,
                                                    const std::function<std::vector<InputBinding>(const TypedNet& around)>& bindings,
                                                    Emitter& emitter);

}  // namespace heddle
