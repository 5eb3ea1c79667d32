// The gradient of Loop. However a loop ends, it stacks the values of each iteration that its gradient needs, so that the backward Scan has
// as many iterations as the forward had: no bound has to be known. With one (a constant M) the stacks are planned, without it they grow as
// the loop runs.
#include <fmt/format.h>

#include "base/text/text.h"
#include "derive/reverse/repeated_gradient.h"

namespace heddle {
namespace {

constexpr size_t own_inputs = 2;  // of the operator: M and cond; of the body: the iteration number and cond

}  // namespace

Result<std::vector<GradientPart>> loop_gradient(const NodeGradientCall& call, Emitter& emitter) {
  const Node node = call.forward();  // the net grows
  RepeatedPorts ports;
  ports.own = own_inputs;
  ports.own_outputs = 1;
  ports.counts = true;
  ports.captures = static_cast<size_t>(node.int_attribute("captured", 0));
  ports.states = node.inputs.size() - own_inputs - ports.captures;
  ports.output_axes.assign(node.outputs.size() - ports.states, 0);
  ports.output_directions.assign(node.outputs.size() - ports.states, 0);
  for (size_t s = 0; s < ports.states; ++s) {
    const ValueId before = node.inputs[own_inputs + s], after = node.outputs[s];
    if (!after.valid() || call.types.is_dynamic(before) || !call.types.is_dynamic(after)) continue;
    return Status(
        Code::unsupported,
        fmt::format("carried value {} changes its extents from iteration to iteration, so that they can't be stacked for the gradient",
                    quoted(call.net[before].name)),
        "carry a value of fixed extents, or put heddle::StopGradient after the loop");
  }
  const auto bindings = [&](const TypedNet& around) {
    std::vector<InputBinding> all(own_inputs);
    all[0].type = {DType::i64, Shape{}};
    all[1].type = {DType::boolean, Shape{}};
    for (size_t i = own_inputs; i < node.inputs.size(); ++i) {
      InputBinding& binding = all.emplace_back();
      binding.type = around.type(node.inputs[i]);
      if (i >= ports.first_capture()) binding.content = around.known[node.inputs[i].index];
    }
    return all;
  };
  return repeated_gradient(call, ports, bindings, emitter);
}

}  // namespace heddle
