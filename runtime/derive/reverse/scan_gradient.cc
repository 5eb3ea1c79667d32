// The gradient of Scan: the roles of its ports.
#include "derive/reverse/repeated_gradient.h"

namespace heddle {
namespace {

std::vector<int64_t> listed(const Node& node, const char* name, size_t count) {
  const AttributeValue* const given = node.find(name);
  const std::vector<int64_t> values = given ? std::get<std::vector<int64_t>>(*given) : std::vector<int64_t>();
  return values.empty() ? std::vector<int64_t>(count, 0) : values;
}

// The type of the slice that one iteration gets of a value sliced along an axis.
TensorType slice_of(const TensorType& whole, int64_t axis) {
  const int rank = whole.shape.rank(), at = static_cast<int>(axis < 0 ? axis + rank : axis);
  TensorType slice = whole;
  slice.shape = {};
  for (int d = 0; d < rank; ++d)
    if (d != at) slice.shape.push_back(whole.shape[d]);
  if (whole.bounded_axis == at) slice.bounded_axis = -1;
  if (whole.bounded_axis > at) --slice.bounded_axis;
  return slice;
}

}  // namespace

Result<std::vector<GradientPart>> scan_gradient(const NodeGradientCall& call, Emitter& emitter) {
  const Node node = call.forward();  // the net grows
  RepeatedPorts ports;
  ports.slices = static_cast<size_t>(node.int_attribute("num_scan_inputs", 0));
  ports.captures = static_cast<size_t>(node.int_attribute("captured", 0));
  ports.states = node.inputs.size() - ports.slices - ports.captures;
  const size_t stacks = node.outputs.size() - ports.states;
  ports.input_axes = listed(node, "scan_input_axes", ports.slices);
  ports.input_directions = listed(node, "scan_input_directions", ports.slices);
  ports.output_axes_attribute = "scan_output_axes";
  ports.output_directions_attribute = "scan_output_directions";
  ports.output_axes = listed(node, "scan_output_axes", stacks);
  ports.output_directions = listed(node, "scan_output_directions", stacks);
  const auto bindings = [&](const TypedNet& around) {
    std::vector<InputBinding> all;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      InputBinding& binding = all.emplace_back();
      binding.type = around.type(node.inputs[i]);
      if (i >= ports.first_capture())
        binding.content = around.known[node.inputs[i].index];
      else if (i >= ports.first_slice())
        binding.type = slice_of(binding.type, ports.input_axes[i - ports.first_slice()]);
    }
    return all;
  };
  return repeated_gradient(call, ports, bindings, emitter);
}

}  // namespace heddle
