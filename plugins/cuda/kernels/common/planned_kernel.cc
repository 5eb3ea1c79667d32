#include "kernels/common/planned_kernel.h"

#include <algorithm>

#include "generate/pointwise/epilogue_expression.h"

namespace heddle::cuda {
namespace {

// Returns true if runs may have smaller extents than prepare sees.
bool has_extents(const heddle_tensor* const* tensors, uint32_t count) {
  return std::any_of(tensors, tensors + count, [](const heddle_tensor* t) { return t && t->extent; });
}

int64_t word_of(const void* address) {
  return static_cast<int64_t>(reinterpret_cast<uintptr_t>(address));
}

int64_t word_of(const Address& a, const RunContext& context) {
  switch (a.of) {
    case Address::input:
      return word_of(context.inputs[a.index]->data);
    case Address::output:
      return word_of(context.outputs[a.index]->data);
    case Address::extent:
      return word_of(context.outputs[a.index]->extent);
    case Address::run_state:
      return word_of(context.run_state);
    case Address::random_stream:
      return context.random_stream;
    case Address::random_first:
      return static_cast<int64_t>(context.random_first);
    case Address::fault:
      return word_of(context.fault);
    case Address::fault_mark:
      return static_cast<int64_t>(context.fault_mark);
    case Address::holds:
      return word_of(context.holds);
    case Address::hold_count:
      return context.hold_count;
    default:
      return word_of(static_cast<const char*>(context.scratch) + a.offset);
  }
}

}  // namespace

Status start_launch(const GpuKernel& kernel, const RunContext& context, const Launch& launch, cudaKernel_t entry) {
  if (launch.blocks == 0) return {};
  decltype(launch.words) words = launch.words;
  for (uint32_t i = 0; i < launch.address_count; ++i) words[launch.addresses[i].word] = word_of(launch.addresses[i], context);
  const LaunchShape shape = {kernel.blocks_for(launch.blocks * launch.threads, launch.threads), launch.threads};
  return kernel.start_kernel(context, entry, shape, words.data());
}

Status PlannedKernel::begin(const CreateContext& context, std::unique_ptr<Launches> launches) {
  launches_ = std::move(launches);
  own_inputs_ = own_inputs(context);
  return on(context);
}

Status PlannedKernel::prepare(PrepareContext& context) {
  const heddle_prepare_context& raw = *context.raw();
  const Operands operands = {raw.inputs, raw.outputs, own_inputs_, raw.output_count, raw.host_data};
  varies_ = has_extents(raw.inputs, raw.input_count);
  KernelSource source;
  HEDDLE_PLUGIN_CHECK(launches_->choose(operands, varies_, &source));
  varies_ = varies_ || launches_->varies();
  kernels_.assign(source.entries.size(), nullptr);
  program_ = nullptr;
  if (!kernels_.empty()) HEDDLE_PLUGIN_CHECK(Program::make(device(), source.text, source.contract, &program_));
  for (size_t i = 0; i < kernels_.size(); ++i) HEDDLE_PLUGIN_CHECK(program_->kernel(source.entries[i].c_str(), &kernels_[i]));
  const auto plan = std::make_unique<LaunchPlan>();
  HEDDLE_PLUGIN_CHECK(launches_->plan(operands, plan.get()));
  HEDDLE_PLUGIN_CHECK(plan->check());
  scratch_bytes_ = plan->scratch_bytes;
  HEDDLE_PLUGIN_CHECK(check_scratch(context, scratch_bytes_));
  planned_.assign(plan->launches.begin(), plan->launches.begin() + plan->launch_count);
  if (!varies_) context.reads_on_host({});
  context.set_scratch(scratch_bytes_);
  context.set_tiles(1);
  return {};
}

Status PlannedKernel::run(const RunContext& context, int64_t, int64_t) const {
  if (!varies_) {
    for (const Launch& launch : planned_) HEDDLE_PLUGIN_CHECK(start_launch(*this, context, launch, kernels_[launch.kernel]));
    return {};
  }
  LaunchPlan plan;
  HEDDLE_PLUGIN_CHECK(launches_->plan({context.inputs, context.outputs, own_inputs_, context.output_count, nullptr}, &plan));
  HEDDLE_PLUGIN_CHECK(plan.check());
  if (plan.scratch_bytes > scratch_bytes_) return invalid("extents are larger than those it was prepared for");
  for (uint32_t i = 0; i < plan.launch_count; ++i)
    HEDDLE_PLUGIN_CHECK(start_launch(*this, context, plan.launches[i], kernels_[plan.launches[i].kernel]));
  return {};
}

}  // namespace heddle::cuda
