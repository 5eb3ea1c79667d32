#include "kernels/common/epilogue_kernel.h"

#include <algorithm>

#include "generate/pointwise/element_source.h"
#include "generate/pointwise/epilogue_expression.h"

namespace heddle::cuda {
namespace {

// Writes epilogue ops as one program of "acc" and an input for each operand, whose numbers go to `operands`.
Status compose(const std::vector<EpilogueOp>& epilogue_ops, expression::Program* program, std::vector<uint32_t>* operands) {
  *program = {};
  program->inputs = {"acc"};
  operands->clear();
  int value = program->input("acc");
  for (const EpilogueOp& epilogue_op : epilogue_ops) {
    int operand = -1;
    if (epilogue_op.input >= 0) {
      operands->push_back(static_cast<uint32_t>(epilogue_op.input));
      operand = program->input("operand" + std::to_string(operands->size()));
    }
    HEDDLE_PLUGIN_CHECK(append_epilogue_op(epilogue_op.text, operand, program, &value));
  }
  end_program(program, value);
  while (program->inputs.size() < operands->size() + 1) program->inputs.push_back("unused" + std::to_string(program->inputs.size()));
  if (operands->size() > EpilogueKernel::max_operands)
    return unsupported("an epilogue of " + std::to_string(operands->size()) + " operands, expected at most " +
                       std::to_string(EpilogueKernel::max_operands));
  return {};
}

// Views a tensor of one dimension as one that broadcasts along dimension 1 of an output.
struct PerChannel {
  PerChannel(const heddle_tensor& operand, int32_t rank) : view(operand) {
    std::fill(dims, dims + HEDDLE_MAX_RANK, 1);
    dims[0] = operand.element_count;
    view.rank = rank - 1;
    view.dims = dims;
    view.layout = {};
  }
  int64_t dims[HEDDLE_MAX_RANK];
  heddle_tensor view;
};

}  // namespace

std::vector<EpilogueOp> epilogue_ops_of(const CreateContext& context) {
  std::vector<EpilogueOp> epilogue_ops;
  for (uint32_t i = 0; i < context.epilogue_op_count(); ++i) {
    const heddle_epilogue_op& epilogue_op = context.epilogue_op(i);
    epilogue_ops.push_back({epilogue_op.expression, epilogue_op.operand_input, epilogue_op.operand_kind});
  }
  return epilogue_ops;
}

bool EpilogueKernel::takes(const CreateContext& context, std::initializer_list<int32_t> kinds) {
  if (!context.output(0)) return false;
  const heddle_dtype dtype = context.output(0)->dtype;
  const std::vector<EpilogueOp> epilogue_ops = epilogue_ops_of(context);
  for (const EpilogueOp& epilogue_op : epilogue_ops) {
    if (std::find(kinds.begin(), kinds.end(), epilogue_op.kind) == kinds.end()) return false;
    const heddle_type* const operand = epilogue_op.input < 0 ? nullptr : context.input(static_cast<uint32_t>(epilogue_op.input));
    if (epilogue_op.input >= 0 && (!operand || (operand->dtype != dtype && operand->dtype != HEDDLE_BOOL))) return false;
  }
  expression::Program program;
  std::vector<uint32_t> operands;
  std::string text;
  return compose(epilogue_ops, &program, &operands).ok() && element_function(program, dtype, "tail", &text).ok();
}

Status EpilogueKernel::prepare(const Device& device, const std::vector<EpilogueOp>& epilogue_ops, const heddle_tensor& output,
                               const heddle_tensor* const* inputs) {
  empty_ = epilogue_ops.empty();
  if (empty_) return {};
  expression::Program program;
  HEDDLE_PLUGIN_CHECK(compose(epilogue_ops, &program, &operands_));
  std::vector<PerChannel> views;
  views.reserve(operands_.size());
  std::vector<const heddle_tensor*> tensors = {&output};
  for (const EpilogueOp& epilogue_op : epilogue_ops) {
    if (epilogue_op.input < 0) continue;
    const heddle_tensor& operand = *inputs[epilogue_op.input];
    tensors.push_back(epilogue_op.kind == HEDDLE_OPERAND_PER_CHANNEL ? &views.emplace_back(operand, output.rank).view : &operand);
  }
  return launch_.prepare(device, program, output, tensors.data());
}

Status EpilogueKernel::start(const GpuKernel& kernel, const RunContext& context) const {
  if (empty_) return {};
  void* const output = context.outputs[0]->data;
  std::array<const void*, max_operands + 1> inputs = {output};
  for (size_t i = 0; i < operands_.size(); ++i) inputs[i + 1] = context.inputs[operands_[i]]->data;
  return launch_.start(kernel, context, output, inputs.data());
}

}  // namespace heddle::cuda
