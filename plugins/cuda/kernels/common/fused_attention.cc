#include <cmath>

#include "kernels/common/attention_kernels.h"

namespace heddle::cuda {
namespace {

using cudnn::TensorShape;

constexpr uint64_t workspace_alignment = 256;

// Returns the shape in cuDNN's order of dimensions, batch, head, row, column, whatever their layout.
TensorShape tensor_shape(const AttentionProblem& problem, int64_t rows, int64_t columns, heddle_dtype dtype) {
  const AttentionProblem::Strides strides = problem.strides(rows, columns);
  TensorShape shape;
  shape.rank = 4;
  shape.dtype = cudnn::data_type(dtype);
  const int64_t dims[] = {problem.batch, problem.heads, rows, columns}, steps[] = {strides.batch, strides.head, strides.row, 1};
  std::copy_n(dims, 4, shape.dims);
  std::copy_n(steps, 4, shape.strides);
  return shape;
}

}  // namespace

Status FusedAttention::create(const CreateContext& context) {
  HEDDLE_PLUGIN_CHECK(begin(context));
  HEDDLE_PLUGIN_CHECK(cudnn::check_library());
  HEDDLE_PLUGIN_CHECK(planner_.ask(context, cudnn::planner_name));
  return stream_.ask(context, cudnn::stream_name);
}

Status FusedAttention::choose_plan(const heddle_tensor& output, uint64_t max_workspace) {
  const AttentionProblem& p = problem();
  auto call = std::make_unique<cudnn::PlannedCall>();
  cudnn::Graph graph;
  const auto take = [&](const TensorShape& shape) -> Status {
    int64_t* const id = &call->ids[call->count++];
    return graph.add_tensor(shape, id);
  };
  HEDDLE_PLUGIN_CHECK(take(tensor_shape(p, p.queries, p.depth, output.dtype)));
  HEDDLE_PLUGIN_CHECK(take(tensor_shape(p, p.keys, p.depth, output.dtype)));
  HEDDLE_PLUGIN_CHECK(take(tensor_shape(p, p.keys, p.width, output.dtype)));
  TensorShape factor;
  factor.rank = 4;
  std::fill_n(factor.dims, 4, 1);
  std::fill_n(factor.strides, 4, 1);
  factor.is_by_value = true;
  HEDDLE_PLUGIN_CHECK(take(factor));
  HEDDLE_PLUGIN_CHECK(take(tensor_shape(p, p.queries, p.width, output.dtype)));
  const int64_t* const ids = call->ids;
  HEDDLE_PLUGIN_CHECK(graph.add_attention(ids[0], ids[1], ids[2], ids[3], ids[4]));
  cudnn::PlanRules rules;
  rules.tensor_cores = rules.converts = true;
  rules.max_workspace_bytes = max_workspace;
  HEDDLE_PLUGIN_CHECK(planner_.made()->choose(graph, rules, &call->plan));
  call_ = std::move(call);
  return {};
}

Status FusedAttention::prepare(PrepareContext& context) {
  HEDDLE_PLUGIN_CHECK(read_problem(context));
  call_ = nullptr;
  const heddle_tensor& output = *context.output(0);
  if (output.element_count == 0) return {};
  const AttentionProblem& p = problem();
  if (p.keys == 0 || p.depth == 0) return unsupported("attention without keys, or of no columns");
  if (!knows_factor(context)) return unsupported("attention with a scale that only the run knows");
  factor_ = static_cast<float>(factor(context));
  // Softmax subtracts the largest score of a row. An engine that finds the maximum before it scales would find the smallest one if the
  // factor is negative.
  if (!(factor_ > 0) || std::isinf(factor_)) return unsupported("attention whose scale is not a positive number");
  const uint64_t budget = context.scratch_budget();
  HEDDLE_PLUGIN_CHECK(choose_plan(output, budget > workspace_alignment ? budget - workspace_alignment : 0));
  if (call_->plan.workspace_bytes() > 0) context.set_scratch(call_->plan.workspace_bytes() + workspace_alignment);
  return {};
}

Status FusedAttention::run(const RunContext& context, int64_t, int64_t) const {
  if (!call_) return {};
  const TraceRange range(trace_name());
  void* const addresses[] = {context.inputs[query]->data, context.inputs[key]->data, context.inputs[value]->data,
                             const_cast<float*>(&factor_), context.outputs[0]->data};
  void* workspace = nullptr;
  if (call_->plan.workspace_bytes() > 0) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(context.scratch) + workspace_alignment - 1;
    workspace = reinterpret_cast<void*>(at / workspace_alignment * workspace_alignment);
  }
  return stream_(context)->execute(*call_, addresses, workspace);
}

}  // namespace heddle::cuda
