#include "library/cudnn_handle.h"

namespace heddle::cuda::cudnn {
namespace {

Status make_handle(Device& device, cudaStream_t stream, cudnnHandle_t* handle) {
  HEDDLE_PLUGIN_CHECK(check_library());
  const Api& api = Api::get();
  HEDDLE_CUDA_CALL(cudaSetDevice, device.index);
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

// A handle belongs to the device that was current when it was made.
Handle::~Handle() {
  if (!handle_) return;
  Api::get().cudaSetDevice(device_.index);
  Api::get().cudnnDestroy(handle_);
}

uint64_t next_plan_number() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

Status StreamHandle::execute(const void* kernel, const PlannedCall& call, void* const* addresses, void* workspace) {
  Bound& bound = bound_[kernel];
  if (bound.number != call.number) bound = {call.number, {}};
  HEDDLE_PLUGIN_CHECK(bound.pack.bind(call.ids, addresses, call.count, workspace));
  Status status = enqueue_on(device_, stream_, [&]() -> Status {
    HEDDLE_CUDA_CALL(cudaSetDevice, device_.index);
    const cudnnStatus_t executed =
        Api::get().cudnnBackendExecute(handle_.get(), call.plan.descriptor().get(), bound.pack.descriptor().get());
    return executed == CUDNN_STATUS_SUCCESS ? Status() : failed("cudnnBackendExecute", executed);
  });
  if (status.code == HEDDLE_ERROR_DEVICE_LOST) device_.loss.happened(status.text);
  return status;
}

}  // namespace heddle::cuda::cudnn
