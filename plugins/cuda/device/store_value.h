// Writes a few bytes from the host to the device in stream order. They are read during the call and travel as a kernel's parameter, so the
// host memory need not stay valid.
#pragma once

#include "device/cuda_device.h"

namespace heddle::cuda {

constexpr uint64_t max_value_bytes = 64;

// Must be called when the device is opened.
plugin::Status prepare_store_value(Device& device);
plugin::Status store_value(Device& device, cudaStream_t stream, void* destination, const void* value, uint64_t bytes);

}  // namespace heddle::cuda
