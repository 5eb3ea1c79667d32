#include "device/cuda_device.h"

namespace heddle::cuda {

using plugin::Status;

namespace {

std::string version_text(int number) {
  return std::to_string(number / 1000) + "." + std::to_string(number % 1000 / 10);
}

}  // namespace

std::string describe_device(const Device& d) {
  const Api& api = Api::get();
  if (const DeviceDescription* const made_up = api.described)
    return made_up->name + ", sm_" + std::to_string(d.major) + std::to_string(d.minor) + ", not here: described after " + made_up->source +
           ", " + made_up->date + "; workspaces of cuBLASLt and cuDNN are budgets of " + std::to_string(made_up->cublaslt_workspace_bytes) +
           " and " + std::to_string(made_up->cudnn_workspace_bytes) + " bytes";
  int driver = 0, runtime = 0;
  api.cudaDriverGetVersion(&driver);
  api.cudaRuntimeGetVersion(&runtime);
  std::string text = std::string(d.properties.name) + ", sm_" + std::to_string(d.major) + std::to_string(d.minor) + ", driver for CUDA " +
                     version_text(driver) + ", runtime " + version_text(runtime);
  text += api.missing_cublasLt().empty() ? ", cuBLASLt " + std::to_string(api.cublasLtGetVersion()) : ", no cuBLASLt";
  text += api.missing_cudnn().empty() ? ", cuDNN " + std::to_string(api.cudnnGetVersion()) : ", no cuDNN";
  return text;
}

Status noted(Device& device, cudaStream_t stream, Status status) {
  if (status.code == HEDDLE_ERROR_DEVICE) {
    const Api& api = Api::get();
    cudaError_t behind = api.cudaPeekAtLastError();
    if (!is_sticky(behind)) behind = api.cudaStreamQuery(stream);
    if (is_sticky(behind))
      status = {HEDDLE_ERROR_DEVICE_LOST, status.text + "; " + error_text("the stream", behind)};
    else
      api.cudaGetLastError();  // clears the error, so that no other code takes it for its own
  }
  if (status.code == HEDDLE_ERROR_DEVICE_LOST) device.loss.happened(status.text);
  return status;
}

}  // namespace heddle::cuda
