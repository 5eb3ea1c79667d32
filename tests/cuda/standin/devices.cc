// Implements cudart: devices, versions and the texts of errors.
#include <algorithm>
#include <cstdio>
#include <string>

#include "process.h"

namespace standin = heddle::cuda::standin;
using standin::CallKind;
using standin::Lock;
using standin::Process;
using standin::this_thread;

namespace {

constexpr int multiprocessors = 2, major_capability = 9, minor_capability = 0;

bool is_device(const Process& process, int device) {
  return device >= 0 && device < process.settings.devices;
}

// Fills in the properties of compute capability 9.0 (Programming Guide, Compute Capabilities: Technical Specifications).
void fill(const Process& process, int device, cudaDeviceProp* properties) {
  *properties = {};
  std::snprintf(properties->name, sizeof(properties->name), "stand-in %d", device);
  properties->totalGlobalMem = process.settings.memory_bytes;
  properties->major = major_capability;
  properties->minor = minor_capability;
  properties->multiProcessorCount = multiprocessors;
  properties->warpSize = 32;
  properties->maxThreadsPerBlock = 1024;
  properties->maxThreadsDim[0] = properties->maxThreadsDim[1] = 1024;
  properties->maxThreadsDim[2] = 64;
  properties->maxGridSize[0] = 2147483647;
  properties->maxGridSize[1] = properties->maxGridSize[2] = 65535;
  properties->maxThreadsPerMultiProcessor = 2048;
  properties->sharedMemPerBlock = 48 * 1024;
  properties->sharedMemPerBlockOptin = 227 * 1024;
  properties->sharedMemPerMultiprocessor = 228 * 1024;
  properties->regsPerBlock = 65536;
  properties->unifiedAddressing = 1;
  properties->concurrentKernels = 1;
  properties->asyncEngineCount = 2;
  properties->memoryPoolsSupported = 1;
  properties->hostRegisterSupported = 1;
}

cudaError_t attribute(const Process& process, cudaDeviceAttr asked, int* value) {
  cudaDeviceProp properties;
  fill(process, 0, &properties);
  switch (asked) {
    case cudaDevAttrMultiProcessorCount:
      return *value = properties.multiProcessorCount, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = properties.major, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = properties.minor, cudaSuccess;
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = properties.maxThreadsPerBlock, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = static_cast<int>(properties.sharedMemPerBlock), cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = static_cast<int>(properties.sharedMemPerBlockOptin), cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return *value = static_cast<int>(properties.sharedMemPerMultiprocessor), cudaSuccess;
    case cudaDevAttrMemoryPoolsSupported:
      return *value = 1, cudaSuccess;
    case cudaDevAttrWarpSize:
      return *value = properties.warpSize, cudaSuccess;
    default:
      return cudaErrorNotSupported;
  }
}

}  // namespace

cudaError_t cudaGetDeviceCount(int* count) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    process.settings = standin::Settings::read();
    *count = process.settings.devices;
    return process.settings.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
  });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    process.settings = standin::Settings::read();
    process.engine.set_order(process.settings.seed, process.settings.hold);
    process.engine.set_idle(process.settings.idle);
    if (!is_device(process, device)) return cudaErrorInvalidDevice;
    return fill(process, device, properties), cudaSuccess;
  });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr asked, int device) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    return is_device(process, device) ? attribute(process, asked, value) : cudaErrorInvalidDevice;
  });
}

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!is_device(process, device)) return cudaErrorInvalidDevice;
    std::snprintf(text, static_cast<size_t>(length), "0000:%02X:00.0", process.settings.first_device + device);
    return cudaSuccess;
  });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return standin::api(__func__, CallKind::other, [&](Process&, Lock&) { return *least = 0, *greatest = -5, cudaSuccess; });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!is_device(process, device) || !is_device(process, peer)) return cudaErrorInvalidDevice;
    return *can = device != peer ? 1 : 0, cudaSuccess;
  });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (flags != 0) return cudaErrorInvalidValue;
    if (!is_device(process, peer) || peer == this_thread().device) return cudaErrorInvalidDevice;
    bool& enabled = process.peers[{this_thread().device, peer}];
    return std::exchange(enabled, true) ? cudaErrorPeerAccessAlreadyEnabled : cudaSuccess;
  });
}

cudaError_t cudaDriverGetVersion(int* version) {
  return standin::api(__func__, CallKind::other, [&](Process&, Lock&) { return *version = CUDART_VERSION, cudaSuccess; });
}

cudaError_t cudaRuntimeGetVersion(int* version) {
  return standin::api(__func__, CallKind::other, [&](Process&, Lock&) { return *version = CUDART_VERSION, cudaSuccess; });
}

cudaError_t cudaSetDevice(int device) {
  return standin::api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!is_device(process, device)) return cudaErrorInvalidDevice;
    return this_thread().device = device, cudaSuccess;
  });
}

cudaError_t cudaGetDevice(int* device) {
  return standin::api(__func__, CallKind::other, [&](Process&, Lock&) { return *device = this_thread().device, cudaSuccess; });
}

// "Returns the last error that has been produced by any of the runtime calls in the same instance of the CUDA Runtime library in the host
// thread and resets it to cudaSuccess."
cudaError_t cudaGetLastError() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  const cudaError_t lost = standin::begin_call(process, __func__, CallKind::other);
  return lost != cudaSuccess ? lost : std::exchange(this_thread().last_error, cudaSuccess);
}

// "This call does not reset the error to cudaSuccess like cudaGetLastError()."
cudaError_t cudaPeekAtLastError() {
  Process& process = Process::get();
  const Lock lock(process.mutex);
  const cudaError_t lost = standin::begin_call(process, __func__, CallKind::other);
  return lost != cudaSuccess ? lost : this_thread().last_error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (error) {
#define HEDDLE_CUDA_ERROR(name, text) \
  case name:                          \
    return #name;
#include "errors.inc"
#undef HEDDLE_CUDA_ERROR
    default:
      return "unrecognized error code";
  }
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
#define HEDDLE_CUDA_ERROR(name, text) \
  case name:                          \
    return text;
#include "errors.inc"
#undef HEDDLE_CUDA_ERROR
    default:
      return "unrecognized error code";
  }
}
