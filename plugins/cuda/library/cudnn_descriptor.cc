#include "library/cudnn_descriptor.h"

namespace heddle::cuda::cudnn {

Status failed(const std::string& what, cudnnStatus_t status) {
  const Api& api = Api::get();
  char more[512] = "";
  api.cudnnGetLastErrorString(more, sizeof(more));  // the text of this thread's last error, which the call clears
  const std::string text = "cuDNN: " + what + ": " + api.cudnnGetErrorString(status) + (*more ? std::string(" (") + more + ")" : "");
  if (CUDNN_STATUS_CATEGORY(status) == CUDNN_STATUS_NOT_SUPPORTED) return plugin::unsupported(text);
  if (status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED || status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED)
    return {HEDDLE_ERROR_OUT_OF_MEMORY, text};
  return {HEDDLE_ERROR_DEVICE, text};
}

Status Descriptor::make(cudnnBackendDescriptorType_t type, const char* what, Descriptor* made) {
  made->reset();
  made->what_ = what;
  const cudnnStatus_t status = Api::get().cudnnBackendCreateDescriptor(type, &made->descriptor_);
  if (status == CUDNN_STATUS_SUCCESS) return {};
  made->descriptor_ = nullptr;
  return failed(std::string(what) + ": cudnnBackendCreateDescriptor", status);
}

void Descriptor::reset() {
  if (descriptor_) Api::get().cudnnBackendDestroyDescriptor(descriptor_);
  descriptor_ = nullptr;
}

Status Descriptor::set(cudnnBackendAttributeName_t attribute, const char* name, cudnnBackendAttributeType_t type, int64_t count,
                       const void* values) {
  const cudnnStatus_t status = Api::get().cudnnBackendSetAttribute(descriptor_, attribute, type, count, values);
  return status == CUDNN_STATUS_SUCCESS ? Status() : failed(text(name), status);
}

Status Descriptor::set(cudnnBackendAttributeName_t attribute, const char* name, const Descriptor& value) {
  return set(attribute, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &value.descriptor_);
}

Status Descriptor::finalize() {
  const cudnnStatus_t status = Api::get().cudnnBackendFinalize(descriptor_);
  return status == CUDNN_STATUS_SUCCESS ? Status() : failed(text("cudnnBackendFinalize"), status);
}

Status Descriptor::get(cudnnBackendAttributeName_t attribute, const char* name, cudnnBackendAttributeType_t type, int64_t most,
                       int64_t* count, void* values) const {
  *count = 0;
  const cudnnStatus_t status = Api::get().cudnnBackendGetAttribute(descriptor_, attribute, type, most, count, values);
  return status == CUDNN_STATUS_SUCCESS ? Status() : failed(text(name), status);
}

}  // namespace heddle::cuda::cudnn
