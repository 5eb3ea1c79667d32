#include "kernels/common/stage_tail.h"

#include <algorithm>

#include "generate/element_source.h"
#include "generate/stage_chain.h"

namespace heddle::cuda {
namespace {

// Stages as one program of "acc" and an input for each operand, whose numbers go to `operands`.
Status compose(const std::vector<Stage>& stages, expression::Program* program, std::vector<uint32_t>* operands) {
  *program = {};
  program->inputs = {"acc"};
  operands->clear();
  int value = program->input("acc");
  for (const Stage& stage : stages) {
    int operand = -1;
    if (stage.input >= 0) {
      operands->push_back(static_cast<uint32_t>(stage.input));
      operand = program->input("operand" + std::to_string(operands->size()));
    }
    HEDDLE_PLUGIN_CHECK(append_stage(stage.text, operand, program, &value));
  }
  end_program(program, value);
  while (program->inputs.size() < operands->size() + 1) program->inputs.push_back("unused" + std::to_string(program->inputs.size()));
  if (operands->size() > StageTail::most_operands)
    return unsupported("an epilogue of " + std::to_string(operands->size()) + " operands, expected at most " +
                       std::to_string(StageTail::most_operands));
  return {};
}

// A view of one dimension as one that broadcasts along dimension 1 of an output.
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

std::vector<Stage> stages_of(const CreateContext& context) {
  std::vector<Stage> stages;
  for (uint32_t i = 0; i < context.stage_count(); ++i) {
    const heddle_epilogue_stage& stage = context.stage(i);
    stages.push_back({stage.expression, stage.operand_input, stage.operand_kind});
  }
  return stages;
}

bool StageTail::takes(const CreateContext& context, std::initializer_list<int32_t> kinds) {
  if (!context.output(0)) return false;
  const heddle_dtype dtype = context.output(0)->dtype;
  const std::vector<Stage> stages = stages_of(context);
  for (const Stage& stage : stages) {
    if (std::find(kinds.begin(), kinds.end(), stage.kind) == kinds.end()) return false;
    const heddle_type* const operand = stage.input < 0 ? nullptr : context.input(static_cast<uint32_t>(stage.input));
    if (stage.input >= 0 && (!operand || (operand->dtype != dtype && operand->dtype != HEDDLE_BOOL))) return false;
  }
  expression::Program program;
  std::vector<uint32_t> operands;
  std::string text;
  return compose(stages, &program, &operands).ok() && element_function(program, dtype, "tail", &text).ok();
}

Status StageTail::prepare(const Device& device, const std::vector<Stage>& stages, const heddle_tensor& output,
                          const heddle_tensor* const* inputs) {
  empty_ = stages.empty();
  if (empty_) return {};
  expression::Program program;
  HEDDLE_PLUGIN_CHECK(compose(stages, &program, &operands_));
  std::vector<PerChannel> views;
  views.reserve(operands_.size());
  std::vector<const heddle_tensor*> tensors = {&output};
  for (const Stage& stage : stages) {
    if (stage.input < 0) continue;
    const heddle_tensor& operand = *inputs[stage.input];
    tensors.push_back(stage.kind == HEDDLE_OPERAND_PER_CHANNEL ? &views.emplace_back(operand, output.rank).view : &operand);
  }
  return launch_.prepare(device, program, output, tensors.data());
}

Status StageTail::start(const GpuKernel& kernel, const RunContext& context) const {
  if (empty_) return {};
  void* const output = context.outputs[0]->data;
  std::array<const void*, most_operands + 1> inputs = {output};
  for (size_t i = 0; i < operands_.size(); ++i) inputs[i + 1] = context.inputs[operands_[i]]->data;
  return launch_.start(kernel, context, output, inputs.data());
}

}  // namespace heddle::cuda
