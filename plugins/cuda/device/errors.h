// Converts errors of CUDA to those of the host.
#pragma once

#include <string>

#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

// Returns true for errors after which every call of the process for the device fails with the same error: its context is gone (CUDA C++
// Programming Guide, "Error checking"; the runtime API's documentation says of each that the process has to be ended to use CUDA again).
inline bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorExternalDevice:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorContained:
      return true;
    default:
      return false;
  }
}

inline heddle_status status_of(cudaError_t error) {
  if (error == cudaSuccess) return HEDDLE_OK;
  if (error == cudaErrorNotReady) return HEDDLE_PENDING;
  if (error == cudaErrorMemoryAllocation) return HEDDLE_ERROR_OUT_OF_MEMORY;
  return is_sticky(error) ? HEDDLE_ERROR_DEVICE_LOST : HEDDLE_ERROR_DEVICE;
}

// Returns, for example, "cudaMallocAsync: out of memory (cudaErrorMemoryAllocation)".
inline std::string error_text(const char* call, cudaError_t error) {
  const Api& api = Api::get();
  return std::string(call) + ": " + api.cudaGetErrorString(error) + " (" + api.cudaGetErrorName(error) + ")";
}

// Returns the status of a call that failed, and clears the thread's last error. CUDA keeps that error for the next caller of
// cudaGetLastError, which may be the embedding program.
inline plugin::Status failed(const char* call, cudaError_t error) {
  if (!is_sticky(error)) Api::get().cudaGetLastError();
  return {status_of(error), error_text(call, error)};
}

// Calls a function of the runtime through the table. If it fails, returns from the enclosing function, which must return a Status.
#define HEDDLE_CUDA_CALL(name, ...)                                                                  \
  do {                                                                                               \
    const cudaError_t heddle_cuda_error_ = ::heddle::cuda::Api::get().name(__VA_ARGS__);             \
    if (heddle_cuda_error_ != cudaSuccess) return ::heddle::cuda::failed(#name, heddle_cuda_error_); \
  } while (false)

}  // namespace heddle::cuda
