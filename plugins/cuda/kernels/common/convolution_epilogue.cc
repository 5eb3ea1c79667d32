#include "kernels/common/convolution_epilogue.h"

#include <string>

#include "generate/pointwise/element_source.h"

namespace heddle::cuda {

using expression::Instruction;
using expression::Opcode;
using plugin::CreateContext;
using plugin::Status;

namespace {

Status parse_epilogue_op(const char* text, ConvolutionEpilogueOp* epilogue_op) {
  epilogue_op->program = {};
  epilogue_op->program.inputs = {"acc", "operand"};
  std::string error;
  if (!expression::parse(text, {}, epilogue_op->program, error) || epilogue_op->program.inputs.size() > 2)
    return plugin::invalid("epilogue \"" + std::string(text) + "\": " + (error.empty() ? "it names an unknown value" : error));
  for (const Instruction& instruction : epilogue_op->program.code)
    if (instruction.op == Opcode::input && instruction.a == 1 && epilogue_op->input < 0)
      return plugin::invalid("epilogue \"" + std::string(text) + "\" has no operand");
  return {};
}

// One operation of cuDNN's, on numbered values. Value 0 is the convolution's, each operation makes the next; an operand has no number.
struct Operation {
  static constexpr int operand = -1, none = -2;
  cudnn::PointwiseShape shape;
  int x = 0, b = none;
};

// Finds the mode that computes the instruction, for NaN and infinities too. Selections between two values are not among the modes: cuDNN
// does not specify what becomes of a NaN.
bool mode_of(Opcode op, cudnnPointwiseMode_t* mode) {
  switch (op) {
    case Opcode::add:
      return *mode = CUDNN_POINTWISE_ADD, true;
    case Opcode::sub:
      return *mode = CUDNN_POINTWISE_SUB, true;
    case Opcode::mul:
      return *mode = CUDNN_POINTWISE_MUL, true;
    case Opcode::div:
      return *mode = CUDNN_POINTWISE_DIV, true;
    case Opcode::tanh:
      return *mode = CUDNN_POINTWISE_TANH_FWD, true;
    case Opcode::sigmoid:
      return *mode = CUDNN_POINTWISE_SIGMOID_FWD, true;
    case Opcode::erf:
      return *mode = CUDNN_POINTWISE_ERF, true;
    case Opcode::exp:
      return *mode = CUDNN_POINTWISE_EXP, true;
    case Opcode::sqrt:
      return *mode = CUDNN_POINTWISE_SQRT, true;
    case Opcode::abs:
      return *mode = CUDNN_POINTWISE_ABS, true;
    case Opcode::neg:
      return *mode = CUDNN_POINTWISE_NEG, true;
    default:
      return false;
  }
}

// Recognizes max(acc, 0), min(max(acc, a), b) and max(min(acc, b), a) with a below b.
bool is_bound(const expression::Program& program, cudnn::PointwiseShape* shape) {
  const auto at = [&](int32_t i) -> const Instruction& { return program.code[static_cast<size_t>(i)]; };
  const auto side = [&](const Instruction& outer, Opcode inner, double* bound) {
    // Returns the operand next to a constant; -1 if there is none of that kind.
    for (const auto& [number, other] : {std::pair(outer.b, outer.a), std::pair(outer.a, outer.b)})
      if (at(number).op == Opcode::constant && at(other).op == inner) return *bound = at(number).literal, other;
    return int32_t{-1};
  };
  const Instruction& result = program.code.back();
  *shape = {};
  shape->mode = CUDNN_POINTWISE_RELU_FWD;
  if (result.op == Opcode::max && side(result, Opcode::input, &shape->lower) >= 0) return shape->lower == 0;
  double outer = 0, inner = 0;
  const Opcode other = result.op == Opcode::min ? Opcode::max : Opcode::min;
  if (result.op != Opcode::min && result.op != Opcode::max) return false;
  const int32_t within = side(result, other, &outer);
  if (within < 0 || side(at(within), Opcode::input, &inner) < 0) return false;
  shape->has_upper = true;
  shape->lower = result.op == Opcode::min ? inner : outer;
  shape->upper = result.op == Opcode::min ? outer : inner;
  return shape->lower < shape->upper;
}

// Adds the operations of an epilogue op after value *value. Returns false if cuDNN does not have them.
bool add_operations(const ConvolutionEpilogueOp& epilogue_op, int* value, std::vector<Operation>* operations) {
  if (epilogue_op.kind == HEDDLE_OPERAND_LAST_DIMENSION) return false;
  Operation bound;
  if (epilogue_op.input < 0 && is_bound(epilogue_op.program, &bound.shape)) {
    bound.x = *value;
    operations->push_back(bound);
    *value = static_cast<int>(operations->size());
    return true;
  }
  std::vector<int> values;
  for (const Instruction& instruction : epilogue_op.program.code) {
    if (instruction.op == Opcode::input) {
      values.push_back(instruction.a == 0 ? *value : Operation::operand);
      continue;
    }
    Operation operation;
    if (instruction.c >= 0 || instruction.a < 0 || !mode_of(instruction.op, &operation.shape.mode)) return false;
    operation.x = values[static_cast<size_t>(instruction.a)];
    if (instruction.b >= 0) operation.b = values[static_cast<size_t>(instruction.b)];
    operations->push_back(operation);
    values.push_back(static_cast<int>(operations->size()));
  }
  if (values.empty() || values.back() != static_cast<int>(operations->size()) || operations->empty()) return false;
  *value = values.back();
  return true;
}

}  // namespace

Status convolution_epilogue_ops(const CreateContext& context, std::vector<ConvolutionEpilogueOp>* epilogue_ops) {
  epilogue_ops->clear();
  if (context.epilogue_op_count() > max_convolution_epilogue_ops) return plugin::unsupported("more than 8 fused operators");
  // Operands of epilogue ops follow the schema's three inputs; without a bias, input 2 may be one of them.
  bool bias = context.input(2) != nullptr;
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) bias = bias && context.epilogue_op(i).operand_input != 2;
  if (bias) {
    ConvolutionEpilogueOp epilogue_op;
    epilogue_op.input = 2;
    epilogue_op.kind = HEDDLE_OPERAND_PER_CHANNEL;
    HEDDLE_PLUGIN_CHECK(parse_epilogue_op("acc + operand", &epilogue_op));
    epilogue_ops->push_back(std::move(epilogue_op));
  }
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) {
    ConvolutionEpilogueOp epilogue_op;
    epilogue_op.input = context.epilogue_op(i).operand_input;
    epilogue_op.kind = context.epilogue_op(i).operand_kind;
    HEDDLE_PLUGIN_CHECK(parse_epilogue_op(context.epilogue_op(i).expression, &epilogue_op));
    epilogue_ops->push_back(std::move(epilogue_op));
  }
  return {};
}

bool takes_convolution_epilogue_ops(const CreateContext& context) {
  std::vector<ConvolutionEpilogueOp> epilogue_ops;
  if (!context.output(0) || !convolution_epilogue_ops(context, &epilogue_ops).ok()) return false;
  const heddle_dtype dtype = context.output(0)->dtype;
  for (const ConvolutionEpilogueOp& epilogue_op : epilogue_ops)
    if (epilogue_op.input >= 0 && (!context.input(static_cast<uint32_t>(epilogue_op.input)) ||
                                   context.input(static_cast<uint32_t>(epilogue_op.input))->dtype != dtype))
      return false;
  std::vector<uint32_t> inputs;
  std::string text;
  return element_function(rest_of(epilogue_ops, 0, &inputs), dtype, "element", &text).ok();
}

expression::Program rest_of(const std::vector<ConvolutionEpilogueOp>& epilogue_ops, size_t first, std::vector<uint32_t>* inputs) {
  expression::Program whole;
  int value = whole.input("acc");
  for (size_t i = first; i < epilogue_ops.size(); ++i) {
    std::vector<int> bind = {value, -1};
    if (epilogue_ops[i].input >= 0) {
      inputs->push_back(static_cast<uint32_t>(epilogue_ops[i].input));
      bind[1] = whole.input("operand" + std::to_string(inputs->size()));
    }
    value = expression::append(whole, epilogue_ops[i].program, bind);
  }
  if (static_cast<size_t>(value) + 1 != whole.code.size()) whole.code.push_back(whole.code[static_cast<size_t>(value)]);
  return whole;
}

size_t epilogue_ops_of_cudnn(const std::vector<ConvolutionEpilogueOp>& epilogue_ops) {
  size_t count = 0;
  int value = 0;
  std::vector<Operation> operations;
  while (count < epilogue_ops.size() && add_operations(epilogue_ops[count], &value, &operations)) ++count;
  return count;
}

Status add_epilogue_ops(const std::vector<ConvolutionEpilogueOp>& epilogue_ops, size_t count, const std::vector<int64_t>& operands,
                        const cudnn::TensorShape& between, int64_t from, int64_t to, cudnn::Graph* graph) {
  std::vector<Operation> operations;
  std::vector<int64_t> operand_of;  // one for each operation
  int value = 0;
  for (size_t i = 0; i < count; ++i) {
    if (!add_operations(epilogue_ops[i], &value, &operations)) return plugin::unsupported("an epilogue op that cuDNN does not have");
    operand_of.resize(operations.size(), operands[i]);
  }
  std::vector<int64_t> tensors = {from};
  for (size_t i = 0; i < operations.size(); ++i) {
    Operation& operation = operations[i];
    operation.shape.compute = between.dtype;
    const auto tensor_of = [&](int v) { return v == Operation::operand ? operand_of[i] : tensors[static_cast<size_t>(v)]; };
    int64_t y = to;
    if (i + 1 < operations.size()) HEDDLE_PLUGIN_CHECK(graph->add_tensor(between, &y));
    const int64_t b = operation.b == Operation::none ? -1 : tensor_of(operation.b);
    HEDDLE_PLUGIN_CHECK(graph->add_pointwise(operation.shape, tensor_of(operation.x), b, y));
    tensors.push_back(y);
  }
  return {};
}

}  // namespace heddle::cuda
