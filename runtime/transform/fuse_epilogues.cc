// fuse_epilogues: pointwise operators become epilogue ops of the compute kernel that they follow, as long as it accepts them.
#include <algorithm>

#include "edit/editor.h"
#include "plugin/kernel_call.h"
#include "plugin/pointwise_lowering.h"
#include "transform/fusible_program.h"
#include "transform/transform.h"

namespace heddle {
namespace {

// Returns how an operand of shape `operand` is broadcast to an output of shape `output`; HEDDLE_OPERAND_NONE when it is none of the forms
// kernels support.
int32_t operand_kind(const Shape& operand, const Shape& output) {
  if (operand == output) return HEDDLE_OPERAND_SAME_SHAPE;
  if (operand.element_count() == 1) return HEDDLE_OPERAND_SCALAR;
  if (operand.rank() > output.rank()) return HEDDLE_OPERAND_NONE;
  int wide = -1;
  for (int i = 0; i < operand.rank(); ++i) {
    if (operand[i] == 1) continue;
    if (wide >= 0) return HEDDLE_OPERAND_NONE;
    wide = i + output.rank() - operand.rank();
    if (operand[i] != output[wide]) return HEDDLE_OPERAND_NONE;
  }
  if (wide == output.rank() - 1) return HEDDLE_OPERAND_LAST_DIMENSION;
  return wide == 1 ? HEDDLE_OPERAND_PER_CHANNEL : HEDDLE_OPERAND_NONE;
}

// Makes `reader` an epilogue op of `node`; false when it has no such form. `operand` is the other value that the epilogue op reads, if any.
bool epilogue_op_of(const Editor& editor, const Node& node, const Node& reader, EpilogueOp& epilogue_op, ValueId& operand) {
  const ValueId produced = node.outputs[0];
  const TypedNet& net = editor.net();
  if (reader.outputs.size() != 1 || !reader.epilogue->empty() || reader.placed != node.placed) return false;
  const TensorType& type = net.type(produced);
  const TensorType& result = net.type(reader.outputs[0]);
  if (!is_fused(type.dtype) || result.dtype != type.dtype || type.late() || type.shape != result.shape) return false;
  if (std::count(reader.inputs.begin(), reader.inputs.end(), produced) != 1) return false;
  expression::Program program;
  if (!program_of(reader, program) || !one_dtype(net, reader)) return false;
  std::vector<char> literal;
  inline_scalars(editor, reader.inputs, program, literal);
  operand = ValueId();
  for (size_t i = 0; i < reader.inputs.size(); ++i) {
    if (reader.inputs[i] == produced) {
      program.inputs[i] = "acc";
    } else if (!literal[i]) {
      if (operand.valid()) return false;
      operand = reader.inputs[i];
      program.inputs[i] = "operand";
      epilogue_op.operand_kind = operand_kind(net.type(operand).shape, type.shape);
      if (epilogue_op.operand_kind == HEDDLE_OPERAND_NONE || net.type(operand).late()) return false;
    }
  }
  epilogue_op.expression = expression::print(program);
  epilogue_op.name = reader.name;
  epilogue_op.type = reader.type;
  epilogue_op.operand_input = operand.valid() ? static_cast<int32_t>(node.inputs.size()) : -1;
  return true;
}

// True if `value` is computed after `node`: then `node` moves after its producer once it reads it.
bool is_computed_after(const Editor& editor, NodeId node, ValueId value) {
  const NodeId maker = value.valid() ? editor.graph()[value].producer : NodeId();
  return maker.valid() && maker.index > node.index;
}

// True if the operator that makes `operand`, a value that `reader` alone reads, can have `reader` as its own epilogue op.
bool maker_takes(const Editor& editor, NodeId reader, ValueId operand) {
  const NodeId maker = editor.graph()[operand].producer;
  if (editor.only_reader(operand) != reader) return false;
  const Node& node = editor.node(maker);
  EpilogueOp epilogue_op;
  ValueId other;
  if (node.outputs[0] != operand || has_pointwise_form(node) || reads_updated_variable(editor.graph(), node)) return false;
  if (!epilogue_op_of(editor, node, editor.node(reader), epilogue_op, other)) return false;
  KernelCall call(editor.net(), node, editor.net().device_of(node), 1);
  const KernelEntry* const kernel = call.find();
  return kernel && call.accepts(*kernel, epilogue_op, other.valid() ? &editor.net().type(other) : nullptr);
}

}  // namespace

Result<TypedNet> fuse_epilogues(TypedNet net) {
  if (!has_pointwise(net)) return net;
  Editor editor(std::move(net));
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId id(i);
    if (editor.dead(id)) continue;
    // An operator fuses one addition of a sum of many terms: with more, all their terms would be kept until it runs. When the producers of
    // both terms could fuse the addition, the one that runs last does.
    bool moves = false;
    for (;;) {
      const Node& node = editor.node(id);
      if (!node.outputs[0].valid() || has_pointwise_form(node) || reads_updated_variable(editor.graph(), node)) break;
      const NodeId reader = editor.only_reader(node.outputs[0]);
      if (!reader.valid() || reader == id) break;
      EpilogueOp epilogue_op;
      ValueId operand;
      if (!epilogue_op_of(editor, node, editor.node(reader), epilogue_op, operand)) break;
      KernelCall call(editor.net(), node, editor.net().device_of(node), 1);
      const KernelEntry* kernel = call.find();
      const TensorType* operand_type = operand.valid() ? &editor.net().type(operand) : nullptr;
      if (!kernel || !call.accepts(*kernel, epilogue_op, operand_type)) break;
      const bool waits = epilogue_op.operand_kind == HEDDLE_OPERAND_SAME_SHAPE && is_computed_after(editor, id, operand);
      if (waits && (moves || maker_takes(editor, reader, operand))) break;
      moves = moves || waits;
      std::vector<ValueId> inputs = node.inputs;
      if (operand.valid()) inputs.push_back(operand);
      editor.set_inputs(id, std::move(inputs));
      editor.mutable_node(id).epilogue.edit().push_back(std::move(epilogue_op));
      editor.take_over_output(id, reader);
    }
  }
  return editor.finish();
}

}  // namespace heddle
