#include <algorithm>
#include <numeric>

#include "kernels/common/attention_kernels.h"

namespace heddle::cuda {
namespace {

constexpr uint64_t scratch_alignment = 64;  // of the part after the scores

uint64_t aligned(uint64_t bytes, uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Returns the bytes that each address of a call is a multiple of, if addresses lie `steps` elements apart.
uint32_t alignment_of(std::initializer_list<int64_t> steps, heddle_dtype dtype) {
  int64_t bytes = MatrixProduct::given_alignment;
  for (const int64_t step : steps) bytes = std::gcd(bytes, step * static_cast<int64_t>(byte_width(dtype)));
  return static_cast<uint32_t>(bytes);
}

}  // namespace

Status ComposedAttention::create(const CreateContext& context) {
  HEDDLE_PLUGIN_CHECK(begin(context));
  return library_.ask(context, ProductLibrary::resource);
}

// Chooses both products. cuBLASLt reads matrices column by column, so that each of ours is its transpose there. The first product is
// scores^T = key query^T, the second one output^T = value^T weights^T, where the softmax replaces the scores by the weights in place.
Status ComposedAttention::choose_products(heddle_dtype dtype, uint64_t budget) {
  const AttentionProblem& p = problem();
  const AttentionProblem::Strides query = p.strides(p.queries, p.depth), key = p.strides(p.keys, p.depth),
                                  value = p.strides(p.keys, p.width), output = p.strides(p.queries, p.width);
  const bool one_step = p.heads_axis == 1 || p.heads == 1 || p.batch == 1;
  calls_ = one_step ? 1 : p.batch;
  steps_ = {query.batch, key.batch, value.batch, output.batch, p.heads * p.queries * p.keys};
  const auto step = [&](const AttentionProblem::Strides& strides) { return p.heads == 1 ? strides.batch : strides.head; };
  const int64_t image = p.queries * p.keys;
  ProductShape scoring;
  scoring.dtype = dtype;
  scoring.tf32 = device().tf32;
  scoring.m = p.keys;
  scoring.n = p.queries;
  scoring.k = p.depth;
  scoring.batch = one_step ? p.batch * p.heads : p.heads;
  scoring.a = {true, key.row, step(key)};
  scoring.b = {false, query.row, step(query)};
  scoring.d = {false, p.keys, image};
  ProductShape mixing = scoring;
  mixing.m = p.width;
  mixing.k = p.keys;
  mixing.a = {false, value.row, step(value)};
  mixing.b = {false, p.keys, image};
  mixing.d = {false, output.row, step(output)};
  scoring.alignment = alignment_of({scoring.a.step, scoring.b.step, image, steps_.query, steps_.key, steps_.scores}, dtype);
  mixing.alignment = alignment_of({mixing.a.step, image, mixing.d.step, steps_.value, steps_.output, steps_.scores}, dtype);
  const cublasLtHandle_t handle = library_.made()->handle();
  if (p.depth > 0) HEDDLE_PLUGIN_CHECK(scoring_.choose(device(), handle, scoring, budget));
  return mixing_.choose(device(), handle, mixing, budget);
}

// Prepares the scaling: scores times (or divided by) a number that lies on the device.
Status ComposedAttention::prepare_scaling(const heddle_tensor& scale) {
  expression::Program program;
  program.inputs = {"x0", "x1"};
  std::string error;
  if (!expression::parse(divides() ? "x0 / x1" : "x0 * x1", {}, program, error)) return invalid(error);
  heddle_tensor one = scale;
  one.rank = 0;
  const heddle_tensor* const inputs[] = {&scores_, &one};
  return scaling_.prepare(device(), program, scores_, inputs);
}

Status ComposedAttention::prepare_softmax() {
  const heddle_tensor* const scores = &scores_;
  const Operands operands = {&scores, &scores, 1, 1};
  softmax_ = {};
  softmax_.shape.kind = RowKind::softmax;
  softmax_.axis = 1;
  KernelSource source;
  HEDDLE_PLUGIN_CHECK(softmax_.choose(operands, false, &source));
  HEDDLE_PLUGIN_CHECK(Program::make(device(), source.text, source.contract, &program_));
  kernels_.assign(source.entries.size(), nullptr);
  for (size_t i = 0; i < kernels_.size(); ++i) HEDDLE_PLUGIN_CHECK(program_->kernel(source.entries[i].c_str(), &kernels_[i]));
  const auto plan = std::make_unique<LaunchPlan>();
  HEDDLE_PLUGIN_CHECK(softmax_.plan(operands, plan.get()));
  HEDDLE_PLUGIN_CHECK(plan->check());
  launches_.assign(plan->launches.begin(), plan->launches.begin() + plan->launch_count);
  workspace_at_ = aligned(softmax_at_ + plan->scratch_bytes, scratch_alignment);
  return {};
}

Status ComposedAttention::prepare(PrepareContext& context) {
  HEDDLE_PLUGIN_CHECK(read_problem(context));
  const AttentionProblem& p = problem();
  const heddle_tensor& output = *context.output(0);
  if (output.element_count == 0 || p.keys == 0) return {};
  const uint64_t budget = context.scratch_budget();
  if (p.scores() * static_cast<double>(byte_width(output.dtype)) > static_cast<double>(budget))
    return unsupported("its scores alone are more than the " + std::to_string(budget) + " bytes of scratch that it may have");
  dims_[0] = p.batch * p.heads * p.queries;
  dims_[1] = p.keys;
  scores_ = view_of(output.dtype, nullptr, {dims_, 2});
  scores_.space = HEDDLE_SPACE_DEVICE;
  softmax_at_ = aligned(scores_.byte_size, scratch_alignment);
  factor_ = knows_factor(context) ? factor(context) : 1;
  scales_ = !knows_factor(context);
  if (scales_) HEDDLE_PLUGIN_CHECK(prepare_scaling(*context.input(scale)));
  HEDDLE_PLUGIN_CHECK(prepare_softmax());
  const uint64_t own = workspace_at_ + MatrixProduct::workspace_alignment;
  HEDDLE_PLUGIN_CHECK(check_scratch(context, own));
  HEDDLE_PLUGIN_CHECK(choose_products(output.dtype, std::min(budget - own, MatrixProduct::max_workspace)));
  context.set_scratch(own + std::max(scoring_.workspace_bytes(), mixing_.workspace_bytes()));
  return {};
}

// `operands` are those of the first call.
Status ComposedAttention::multiply(const RunContext& context, const MatrixProduct& product, MatrixProduct::Operands operands) const {
  const auto width = static_cast<int64_t>(byte_width(scores_.dtype));
  const auto at = [&](const void* data, int64_t elements) { return static_cast<const char*>(data) + elements * width; };
  const bool scoring = &product == &scoring_;
  const MatrixProduct::Operands first = operands;
  for (int64_t call = 0; call < calls_; ++call) {
    operands.a = at(first.a, call * (scoring ? steps_.key : steps_.value));
    operands.b = at(first.b, call * (scoring ? steps_.query : steps_.scores));
    operands.d = const_cast<char*>(at(first.d, call * (scoring ? steps_.scores : steps_.output)));
    HEDDLE_PLUGIN_CHECK(product.enqueue(device(), library_.made()->handle(), operands, static_cast<cudaStream_t>(context.stream)));
  }
  return {};
}

Status ComposedAttention::run(const RunContext& context, int64_t, int64_t) const {
  heddle_tensor* const output = context.outputs[0];
  if (output->element_count == 0) return {};
  const TraceRange range(trace_name());
  if (problem().keys == 0) return fill_zero(context, output->data, output->byte_size);
  auto* const scratch = static_cast<char*>(context.scratch);
  heddle_tensor scores = scores_;
  scores.data = scratch;
  MatrixProduct::Operands operands;
  operands.workspace =
      reinterpret_cast<void*>(aligned(reinterpret_cast<uintptr_t>(scratch) + workspace_at_, MatrixProduct::workspace_alignment));
  if (problem().depth > 0) {
    MatrixProduct::Operands of_scores = operands;
    of_scores.a = context.inputs[key]->data;
    of_scores.b = context.inputs[query]->data;
    of_scores.d = scores.data;
    of_scores.alpha = factor_;
    HEDDLE_PLUGIN_CHECK(multiply(context, scoring_, of_scores));
  } else {
    HEDDLE_PLUGIN_CHECK(fill_zero(context, scores.data, scores.byte_size));
  }
  if (scales_) {
    const void* const inputs[] = {scores.data, context.inputs[scale]->data};
    HEDDLE_PLUGIN_CHECK(scaling_.start(*this, context, scores.data, inputs));
  }
  // The softmax is launched as if it were a node whose input and output are the scores.
  const heddle_tensor* const read = &scores;
  heddle_tensor* const written = &scores;
  RunContext of_softmax = context;
  of_softmax.inputs = &read;
  of_softmax.outputs = &written;
  of_softmax.input_count = of_softmax.output_count = 1;
  of_softmax.scratch = scratch + softmax_at_;
  for (const Launch& launch : launches_) HEDDLE_PLUGIN_CHECK(start_launch(*this, of_softmax, launch, kernels_[launch.kernel]));
  operands.a = context.inputs[value]->data;
  operands.b = scores.data;
  operands.d = output->data;
  return multiply(context, mixing_, operands);
}

}  // namespace heddle::cuda
