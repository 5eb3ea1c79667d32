#include "plugin/kernel_instance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/checked.h"
#include "base/exceptions.h"
#include "base/text/limit_names.h"
#include "base/text/text.h"
#include "plugin/host.h"

namespace heddle {
namespace {

Status check_prepared(const KernelEntry& kernel, const heddle_prepare_context& prepared, const PrepareRequest& request) {
  const auto wrong = [&](const std::string& what, const char* hint) {
    return Status(Code::kernel_failed, fmt::format("kernel {} prepared {}", quoted(kernel.name), what), hint);
  };
  if (prepared.tile_count < 0 || prepared.tile_count > INT32_MAX)
    return wrong(fmt::format("{} tiles", prepared.tile_count), "set 0 to 2147483647 tiles in prepare");
  if (prepared.tile_count > 1 && (kernel.kernel->flags & HEDDLE_KERNEL_ASYNC))
    return wrong(fmt::format("{} tiles, and an asynchronous step has one", prepared.tile_count), "set one tile in prepare");
  if (prepared.tile_count > 1 && (kernel.kernel->flags & HEDDLE_KERNEL_RESUMES))
    return wrong(fmt::format("{} tiles, and a step that resumes has one", prepared.tile_count), "set one tile in prepare");
  if (!std::isfinite(prepared.cost_ns) || prepared.cost_ns < 0)
    return wrong(fmt::format("a cost of {} ns", shortest(prepared.cost_ns)), "set a finite cost of 0 or more in prepare, or none");
  const auto limit = static_cast<uint64_t>(request.scratch_limit);
  const uint64_t threads = std::max<uint32_t>(request.max_threads, 1);
  if (prepared.scratch_bytes > limit || prepared.data_scratch_bytes > limit - prepared.scratch_bytes ||
      prepared.thread_scratch_bytes > (limit - prepared.scratch_bytes) / threads)
    return over_limit("plan_bytes", request.scratch_limit,
                      fmt::format("kernel {} asks for {} bytes of scratch and {} more for each of {} threads", quoted(kernel.name),
                                  prepared.scratch_bytes, prepared.thread_scratch_bytes, threads));
  if (prepared.data_scratch_bytes > 0 && (kernel.kernel->flags & HEDDLE_KERNEL_MOVES_ONLY) == 0)
    return wrong("scratch for data, which is for kernels that only move it",
                 "declare HEDDLE_KERNEL_MOVES_ONLY, or ask for scratch of the step instead");
  return {};
}

uint64_t inputs_on_host(std::span<const heddle_tensor* const> inputs) {
  uint64_t bits = 0;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && inputs[i]->space == HEDDLE_SPACE_HOST) bits |= uint64_t{1} << std::min<size_t>(i, 63);
  return bits;
}

}  // namespace

void DestroyState::operator()(void* state) const noexcept {
  if (!kernel->kernel->destroy) return;
  try {
    kernel->kernel->destroy(state);
  } catch (...) {
    without_exceptions(
        [&] { log_line(HEDDLE_LOG_WARNING, fmt::format("kernel {} threw an exception out of destroy", quoted(kernel->name))); });
  }
}

Status prepare_kernel(KernelInstance& made, const PrepareRequest& request, CallServices* services, CallEnd* end) {
  if (end) *end = {OperatorPhase::prepare, HEDDLE_OK};
  const heddle_kernel& kernel = *made.kernel->kernel;
  PrepareCall call({}, services);
  heddle_prepare_context& p = call.abi;
  p.struct_size = sizeof(p);
  p.input_count = static_cast<uint32_t>(request.inputs.size());
  p.output_count = static_cast<uint32_t>(request.outputs.size());
  p.group_size = request.group_size;
  p.group_index = request.group_index;
  p.rank = request.rank;
  p.rank_count = request.rank_count;
  p.inputs = request.inputs.data();
  p.outputs = request.outputs.data();
  p.state = made.state.get();
  p.tile_count = 1;
  p.scratch_budget = static_cast<uint64_t>(std::min(request.scratch_limit, request.scratch_budget));
  p.reads_host = inputs_on_host(request.inputs);
  std::vector<const void*> host_data;
  if (request.host_data.empty())
    for (const heddle_tensor* input : request.inputs)
      host_data.push_back(input && input->space == HEDDLE_SPACE_HOST ? input->data : nullptr);
  p.host_data = request.host_data.empty() ? host_data.data() : request.host_data.data();
  if (kernel.prepare) {
    heddle_status status = HEDDLE_ERROR_INTERNAL;
    try {
      status = kernel.prepare(&p);
    } catch (...) {
      call.error.text = "prepare threw an exception across the plugin boundary";
    }
    if (end) end->answer = status != HEDDLE_OK && call.error.misused ? HEDDLE_ERROR_INTERNAL : status;
    if (status != HEDDLE_OK) return compile_error(status, call.error);
    Status wrong = check_prepared(*made.kernel, p, request);
    if (end && !wrong.ok()) end->answer = HEDDLE_ERROR_INTERNAL;
    HEDDLE_CHECK(std::move(wrong));
  }
  made.tiles = p.tile_count;
  made.scratch_bytes = static_cast<int64_t>(p.scratch_bytes);
  made.data_scratch_bytes = static_cast<int64_t>(p.data_scratch_bytes);
  made.data_scratch_at = align_up(made.scratch_bytes, 64);
  if (made.data_scratch_bytes > 0) made.scratch_bytes = made.data_scratch_at + made.data_scratch_bytes;
  made.thread_scratch_bytes = static_cast<int64_t>(p.thread_scratch_bytes);
  made.cost_ns = p.cost_ns;
  made.reads_host = p.reads_host;
  return {};
}

Status make_kernel(const KernelCall& call, const KernelEntry& first, const NextKernel& next, const PrepareRequest* request,
                   CallServices* services, KernelInstance* made, CallEnd* end) {
  *made = {};
  for (const KernelEntry* kernel = &first;;) {
    KernelInstance whole;  // a partly made instance is never visible, whatever fails
    whole.kernel = kernel;
    void* state = nullptr;
    Status status = call.create(*kernel, services, &state, end);
    whole.state = KernelState(state, {kernel});
    if (status.ok() && request) status = prepare_kernel(whole, *request, services, end);
    if (status.ok()) {
      *made = std::move(whole);
      return {};
    }
    whole.state = nullptr;
    if (status.code() == Code::unsupported) kernel = next(*kernel);
    if (status.code() != Code::unsupported || !kernel) return status;
  }
}

}  // namespace heddle
