#include "plugin/operator_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "base/text/text.h"
#include "plugin/host.h"
#include "plugin/infer_operator.h"

namespace heddle {
namespace {

// An array that needs no allocation for few entries.
template <class T>
class FewOf {
 public:
  explicit FewOf(size_t count) : many_(count > few_.size() ? count : 0), view_(many_.empty() ? few_.data() : many_.data(), count) {}
  T& operator[](size_t i) { return view_[i]; }
  T* data() { return view_.data(); }

 private:
  std::array<T, 8> few_ = {};
  std::vector<T> many_;
  std::span<T> view_;
};

// Operands of an epilogue follow the operator's own inputs.
size_t own_inputs(const Node& node) {
  size_t own = node.inputs.size();
  for (const EpilogueOp& s : *node.epilogue)
    if (s.operand_input >= 0) own = std::min(own, static_cast<size_t>(s.operand_input));
  return own;
}

// Operations of an epilogue op for each element. Canonical text writes each of them as name(...).
int64_t operations(const EpilogueOp& epilogue_op) {
  return std::count(epilogue_op.expression.begin(), epilogue_op.expression.end(), '(');
}

Status ask(const TypedNet& net, const Node& node, const AttributeTable& attributes, heddle_cost& cost) {
  const size_t in_count = own_inputs(node), out_count = node.outputs.size();
  FewOf<heddle_tensor> views(in_count);
  FewOf<const heddle_tensor*> inputs(in_count);
  FewOf<heddle_type> types(out_count);
  FewOf<heddle_type*> outputs(out_count);
  for (size_t i = 0; i < in_count; ++i) {
    if (!node.inputs[i].valid()) continue;
    const TensorType& type = net.type(node.inputs[i]);
    views[i] = tensor_view(type.dtype, type.shape, nullptr);
    inputs[i] = &views[i];
  }
  for (size_t i = 0; i < out_count; ++i) {
    if (!node.outputs[i].valid()) continue;
    types[i] = to_abi(net.type(node.outputs[i]));
    outputs[i] = &types[i];
  }
  InferCall call({});
  call.abi.struct_size = sizeof(call.abi);
  call.abi.input_count = static_cast<uint32_t>(in_count);
  call.abi.output_count = static_cast<uint32_t>(out_count);
  call.abi.attribute_count = attributes.size();
  call.abi.inputs = inputs.data();
  call.abi.outputs = outputs.data();
  call.abi.attributes = attributes.data();
  call.abi.op = node.schema->op;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = node.schema->op->cost(&call.abi, &cost);
  } catch (...) {
    call.error.text = "cost threw an exception across the plugin boundary";
  }
  if (status != HEDDLE_OK) return plugin_error(Code::kernel_failed, status, call.error);
  const auto is_amount = [](double n) { return std::isfinite(n) && n >= 0; };
  if (!is_amount(cost.flops) || !is_amount(cost.bytes))
    return {Code::kernel_failed, fmt::format("its cost is {} flops and {} bytes", shortest(cost.flops), shortest(cost.bytes)),
            "answer finite amounts of 0 or more in the operator's cost function"};
  // A count beyond 64 bits comes from an absurd net, not from the function: limits are lower.
  constexpr double countable = 8e18;
  cost.flops = std::min(cost.flops, countable);
  cost.bytes = std::min(cost.bytes, countable);
  return {};
}

}  // namespace

Result<OperatorCost> operator_cost(const TypedNet& net, const Node& node, const AttributeTable& attributes) {
  OperatorCost result;
  bool late = false;
  const auto add_bytes = [&](const std::vector<ValueId>& values, size_t first) {
    for (size_t i = first; i < values.size(); ++i) {
      if (!values[i].valid()) continue;
      result.bytes += net.type(values[i]).byte_size();
      late = late || net.type(values[i]).late();
    }
  };
  add_bytes(node.inputs, 0);
  add_bytes(node.outputs, 0);
  const OperatorSchema& schema = *node.schema;
  if (late || node.outputs.empty() || !node.outputs[0].valid()) return result;
  const double elements = static_cast<double>(net.type(node.outputs[0]).shape.element_count());
  if (schema.op->cost) {
    const int64_t moved = result.bytes;
    int64_t operands = 0;
    for (size_t i = own_inputs(node); i < node.inputs.size(); ++i)
      if (node.inputs[i].valid()) operands += net.type(node.inputs[i]).byte_size();
    heddle_cost cost = {sizeof(heddle_cost), 0, 0, static_cast<double>(moved - operands)};
    HEDDLE_CHECK(ask(net, node, attributes, cost));
    result.flops = cost.flops;
    result.bytes = static_cast<int64_t>(cost.bytes) + operands;
  } else if (schema.pointwise_operations >= 0) {
    result.flops = elements * schema.pointwise_operations;
  }
  if (result.flops)
    for (const EpilogueOp& epilogue_op : *node.epilogue) *result.flops += elements * static_cast<double>(operations(epilogue_op));
  return result;
}

}  // namespace heddle
