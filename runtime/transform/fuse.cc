#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "base/text.h"
#include "edit/editor.h"
#include "edit/place.h"
#include "heddle/expression.h"
#include "plugin/kernel_call.h"
#include "plugin/pointwise_lowering.h"
#include "transform/transform.h"

namespace heddle {
namespace {

using expression::Instruction;
using expression::Opcode;
using expression::Program;

constexpr size_t most_inputs = 8;
constexpr size_t most_instructions = 64;

// Whether there is anything to fuse: an Editor counts all uses of a net when it begins.
bool has_pointwise(const TypedNet& net) {
  return std::any_of(net.net.nodes.begin(), net.net.nodes.end(), has_pointwise_form);
}

// Dtypes that fused programs are made of. Programs compute f16 and bf16 in f32, and round what is stored: fused, once.
bool is_fused(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

double first_of(const Blob& blob) {
  if (blob.dtype == DType::f32) return static_cast<double>(*reinterpret_cast<const float*>(blob.data));
  const uint16_t bits = *reinterpret_cast<const uint16_t*>(blob.data);
  return static_cast<double>(blob.dtype == DType::f16 ? float_of_f16(bits) : float_of_bf16(bits));
}

// The node as a program over x0, x1, ... = its inputs; false when it has no pointwise form.
bool program_of(const Node& node, Program& program) {
  if (!has_pointwise_form(node)) return false;
  Result<Program> form = pointwise_form(node);
  if (form.ok()) program = std::move(*form);
  return form.ok();
}

// All present inputs and the output have one dtype, which the fused evaluator computes in.
bool one_dtype(const TypedNet& net, const Node& node) {
  const DType dtype = net.type(node.outputs[0]).dtype;
  for (const ValueId id : node.inputs)
    if (!id.valid() || net.type(id).dtype != dtype) return false;
  return true;
}

// Constants of one element become literals; a NaN does not, which has more bits than its name.
void inline_scalars(const Editor& editor, const std::vector<ValueId>& inputs, Program& program, std::vector<char>& literal) {
  literal.assign(inputs.size(), 0);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto blob = editor.constant(inputs[i]);
    if (!blob || !is_fused(blob->dtype) || blob->shape.element_count() != 1) continue;
    const double value = first_of(*blob);
    if (std::isnan(value)) continue;
    for (Instruction& instruction : program.code)
      if (instruction.op == Opcode::input && instruction.a == static_cast<int32_t>(i)) instruction = {Opcode::constant, -1, -1, -1, value};
    literal[i] = 1;
  }
}

// How an operand of shape `operand` meets an output of shape `output`; HEDDLE_OPERAND_NONE when it is none of the forms kernels know.
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

// A node that reads a variable which is updated later must not move behind the update.
bool reads_updated_variable(const Net& net, const Node& node) {
  for (const ValueId id : node.inputs)
    if (id.valid() && net[id].kind == Value::Kind::variable && net[net[id].variable].last != id) return true;
  return false;
}

// ---------------------------------------------------------------- epilogues

// `reader` as a stage behind `node`; false when it has no such form. `operand` is the value the stage reads besides, if any.
bool stage_of(const Editor& editor, const Node& node, const Node& reader, EpilogueStage& stage, ValueId& operand) {
  const ValueId produced = node.outputs[0];
  const TypedNet& net = editor.net();
  if (reader.outputs.size() != 1 || !reader.epilogue.empty() || reader.placed != node.placed) return false;
  const TensorType& type = net.type(produced);
  const TensorType& result = net.type(reader.outputs[0]);
  if (!is_fused(type.dtype) || result.dtype != type.dtype || type.late() || type.shape != result.shape) return false;
  if (std::count(reader.inputs.begin(), reader.inputs.end(), produced) != 1) return false;
  Program program;
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
      stage.operand_kind = operand_kind(net.type(operand).shape, type.shape);
      if (stage.operand_kind == HEDDLE_OPERAND_NONE || net.type(operand).late()) return false;
    }
  }
  stage.expression = expression::print(program);
  stage.name = reader.name;
  stage.type = reader.type;
  stage.operand_input = operand.valid() ? static_cast<int32_t>(node.inputs.size()) : -1;
  return true;
}

// ---------------------------------------------------------------- chains

Shape broadcast_shape(const TypedNet& net, const std::vector<ValueId>& values) {
  Shape result;
  for (const ValueId id : values) {
    const Shape& shape = net.type(id).shape;
    if (shape.rank() > result.rank()) {
      Shape longer;
      for (int i = 0; i < shape.rank() - result.rank(); ++i) longer.push_back(1);
      for (const int64_t dim : result) longer.push_back(dim);
      result = longer;
    }
    for (int i = 0; i < shape.rank(); ++i) {
      int64_t& dim = result[result.rank() - shape.rank() + i];
      if (dim == 1) dim = shape[i];
    }
  }
  return result;
}

struct Chain {
  Program program;
  std::vector<ValueId> inputs;
  bool fusible = false;
};

// `node`'s program with the programs of those producers inlined that only it reads.
Chain absorb(const Editor& editor, const Node& node, const std::vector<Chain>& chains, std::vector<NodeId>& absorbed) {
  Program own;
  Chain chain;
  if (!program_of(node, own) || !one_dtype(editor.net(), node)) return chain;
  std::vector<char> literal;
  inline_scalars(editor, node.inputs, own, literal);
  const TensorType& type = editor.net().type(node.outputs[0]);
  if (type.late() || !node.epilogue.empty()) return chain;
  const auto input_of = [&](ValueId id) {
    const auto it = std::find(chain.inputs.begin(), chain.inputs.end(), id);
    const size_t index = static_cast<size_t>(it - chain.inputs.begin());
    if (it == chain.inputs.end()) chain.inputs.push_back(id);
    return chain.program.input(fmt::format("x{}", index));
  };
  std::vector<int> bind(node.inputs.size(), -1);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (literal[i]) continue;
    const ValueId id = node.inputs[i];
    const NodeId producer = editor.graph()[id].producer;
    const bool inner = producer.valid() && producer.index < chains.size() && chains[producer.index].fusible &&
                       editor.only_reader(id).valid() && std::count(node.inputs.begin(), node.inputs.end(), id) == 1 &&
                       editor.net().type(id).shape == type.shape && editor.node(producer).placed == node.placed &&
                       chains[producer.index].inputs.size() + node.inputs.size() <= most_inputs &&
                       chains[producer.index].program.code.size() + own.code.size() <= most_instructions;
    if (!inner) {
      bind[i] = input_of(id);
      continue;
    }
    std::vector<int> inner_bind;
    for (const ValueId v : chains[producer.index].inputs) inner_bind.push_back(input_of(v));
    bind[i] = expression::append(chain.program, chains[producer.index].program, inner_bind);
    absorbed.push_back(producer);
  }
  const int result = expression::append(chain.program, own, bind);
  if (result != static_cast<int>(chain.program.code.size()) - 1)
    chain.program.code.push_back(chain.program.code[static_cast<size_t>(result)]);
  // A literal may have been what gave the result its rank.
  chain.fusible = is_fused(type.dtype) && broadcast_shape(editor.net(), chain.inputs) == type.shape;
  return chain;
}

// `node`'s program as it is, over those of its inputs that are there.
Chain lowered(const Node& node) {
  Program own;
  Chain chain;
  if (!program_of(node, own)) return chain;
  std::vector<int> bind(node.inputs.size(), -1);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.inputs[i].valid()) continue;
    bind[i] = chain.program.input(fmt::format("x{}", chain.inputs.size()));
    chain.inputs.push_back(node.inputs[i]);
  }
  const int result = expression::append(chain.program, own, bind);
  if (result != static_cast<int>(chain.program.code.size()) - 1)
    chain.program.code.push_back(chain.program.code[static_cast<size_t>(result)]);
  return chain;
}

}  // namespace

Result<TypedNet> fuse_epilogues(TypedNet net) {
  if (!has_pointwise(net)) return net;
  Editor editor(std::move(net));
  const size_t count = editor.graph().nodes.size();
  for (size_t i = 0; i < count; ++i) {
    const NodeId id(i);
    if (editor.dead(id)) continue;
    for (;;) {
      const Node& node = editor.node(id);
      if (!node.outputs[0].valid() || has_pointwise_form(node) || reads_updated_variable(editor.graph(), node)) break;
      const NodeId reader = editor.only_reader(node.outputs[0]);
      if (!reader.valid() || reader == id) break;
      EpilogueStage stage;
      ValueId operand;
      if (!stage_of(editor, node, editor.node(reader), stage, operand)) break;
      KernelCall call(editor.net(), node, editor.net().device_of(node), 1);
      const KernelEntry* kernel = call.find();
      const TensorType* operand_type = operand.valid() ? &editor.net().type(operand) : nullptr;
      if (!kernel || !call.accepts(*kernel, stage, operand_type)) break;
      std::vector<ValueId> inputs = node.inputs;
      if (operand.valid()) inputs.push_back(operand);
      editor.set_inputs(id, std::move(inputs));
      editor.mutable_node(id).epilogue.push_back(std::move(stage));
      editor.take_over_output(id, reader);
    }
  }
  return editor.finish();
}

Result<TypedNet> fuse_pointwise(TypedNet net, bool chains) {
  if (!has_pointwise(net)) return net;
  Editor editor(std::move(net));
  const OperatorSchema* pointwise = editor.net().registry->find_operator("heddle", "Pointwise");
  const size_t count = editor.graph().nodes.size();
  std::vector<Chain> found(count);
  const std::vector<Chain> none;
  if (!pointwise) return editor.finish();
  for (size_t i = 0; i < count; ++i) {
    const NodeId id(i);
    const Node& node = editor.node(id);
    if (editor.dead(id) || !has_pointwise_form(node)) continue;
    // Stays where it is and is not absorbed: what it reads is overwritten later.
    const bool pinned = reads_updated_variable(editor.graph(), node);
    if (node.schema->updates_variable()) continue;
    if (node.placed != host_device && !runs_pointwise(editor.net(), editor.net().device_of(node))) continue;
    std::vector<NodeId> absorbed;
    Chain chain = absorb(editor, node, chains && !pinned ? found : none, absorbed);
    const bool merged = !absorbed.empty();
    if (!merged) {
      // Alone: only when the operator has no kernel of its own.
      KernelCall call(editor.net(), node, editor.net().device_of(node), 1);
      if (call.find()) {
        if (!pinned) found[i] = std::move(chain);
        continue;
      }
      if (!is_pointwise_node(node) && !becomes_pointwise(editor.net(), node)) continue;
      chain = lowered(node);
      if (chain.inputs.empty()) continue;
      chain.fusible =
          is_fused(editor.net().type(node.outputs[0]).dtype) && one_dtype(editor.net(), node) && !editor.net().type(node.outputs[0]).late();
      if (chain.fusible) {
        absorbed.clear();
        Chain compact = absorb(editor, node, none, absorbed);
        if (compact.fusible) chain = std::move(compact);
      }
    }
    if (merged && (!chain.fusible || chain.inputs.size() > most_inputs)) continue;
    // A program without inputs would have no shape to broadcast from.
    if (chain.inputs.empty()) continue;
    Node& target = editor.mutable_node(id);
    target.domain = "heddle";
    target.type = "Pointwise";
    target.version = pointwise->version;
    target.schema = pointwise;
    target.attributes = {{"program", expression::print(chain.program)}};
    editor.set_inputs(id, chain.inputs);
    for (const NodeId producer : absorbed) editor.remove(producer);
    if (!pinned) found[i] = std::move(chain);
  }
  return editor.finish();
}

}  // namespace heddle
