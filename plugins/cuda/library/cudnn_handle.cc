#include "library/cudnn_handle.h"

#include "device/current_device.h"

namespace heddle::cuda::cudnn {
namespace {

Status make_handle(Device& device, cudaStream_t stream, cudnnHandle_t* handle) {
  HEDDLE_PLUGIN_CHECK(check_library());
  const Api& api = Api::get();
  const CurrentDevice current(device.index);
  HEDDLE_PLUGIN_CHECK(current.status());
  const cudnnStatus_t made = api.cudnnCreate(handle);
  if (made != CUDNN_STATUS_SUCCESS) *handle = nullptr;
  if (made != CUDNN_STATUS_SUCCESS) return failed("cudnnCreate", made);
  if (!stream) return {};
  const cudnnStatus_t set = api.cudnnSetStream(*handle, stream);
  return set == CUDNN_STATUS_SUCCESS ? Status() : failed("cudnnSetStream", set);
}

}  // namespace

Status check_library() {
  const std::string& missing = Api::get().missing_cudnn();
  return missing.empty() ? Status() : plugin::unsupported("it needs cuDNN: " + missing);
}

Handle::Handle(Device& device, cudaStream_t stream) : device_(device), status_(make_handle(device, stream, &handle_)) {}

// Destroys the handle, which belongs to the device that was current when it was made. On a lost device cuDNN's call might block or print.
Handle::~Handle() {
  if (!handle_ || device_.loss) return;
  const CurrentDevice current(device_.index);
  Api::get().cudnnDestroy(handle_);
}

VariantPack& StreamHandle::pack_of(const PlannedCall& call) {
  const auto known = bound_.find(call.life.get());
  if (known != bound_.end() && !known->second.life.expired()) return known->second.pack;
  std::erase_if(bound_, [](const auto& entry) { return entry.second.life.expired(); });
  Bound& bound = bound_[call.life.get()];
  bound.life = call.life;
  return bound.pack;
}

Status StreamHandle::execute(const PlannedCall& call, void* const* addresses, void* workspace) {
  VariantPack& pack = pack_of(call);
  HEDDLE_PLUGIN_CHECK(pack.bind(call.ids, addresses, call.count, workspace));
  return enqueue_on(device_, stream_, [&]() -> Status {
    const cudnnStatus_t executed = Api::get().cudnnBackendExecute(handle_.get(), call.plan.descriptor().get(), pack.descriptor().get());
    return executed == CUDNN_STATUS_SUCCESS ? Status() : failed("cudnnBackendExecute", executed);
  });
}

Status Planner::choose(Graph& graph, const PlanRules& rules, Plan* plan) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const CurrentDevice current(device_.index);
  HEDDLE_PLUGIN_CHECK(current.status());
  const Target target = {handle_.get(), nullptr};
  HEDDLE_PLUGIN_CHECK(graph.finish(target));
  return plan->choose(graph, target, rules);
}

}  // namespace heddle::cuda::cudnn
