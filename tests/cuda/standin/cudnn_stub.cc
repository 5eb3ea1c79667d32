// cuDNN is there and can do nothing: each function says so.
#include <cstdio>

#include "process.h"

namespace {

// Each call is counted, as those of the runtime are.
cudnnStatus_t unsupported(const char* name) {
  heddle::cuda::standin::Process& process = heddle::cuda::standin::Process::get();
  const heddle::cuda::standin::Lock lock(process.mutex);
  heddle::cuda::standin::begin_call(process, name, heddle::cuda::standin::CallKind::other);
  return CUDNN_STATUS_NOT_SUPPORTED;
}

}  // namespace

size_t cudnnGetVersion() {
  return 0;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  return status == CUDNN_STATUS_SUCCESS ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED: the stand-in has no cuDNN";
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::snprintf(message, bytes, "the stand-in has no cuDNN");
}
cudnnStatus_t cudnnCreate(cudnnHandle_t*) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t, cudaStream_t) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t, cudnnBackendDescriptor_t*) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                       const void*) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const, cudnnBackendAttributeName_t, cudnnBackendAttributeType_t, int64_t,
                                       int64_t*, void*) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t) {
  return unsupported(__func__);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t, cudnnBackendDescriptor_t, cudnnBackendDescriptor_t) {
  return unsupported(__func__);
}
