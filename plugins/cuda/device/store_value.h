// A few bytes of the host's, taken during the call and written on the device in stream order: they travel as a kernel's parameter, so that
// no host memory has to stay.
#pragma once

#include "device/cuda_device.h"

namespace heddle::cuda {

constexpr uint64_t max_value_bytes = 64;

// When the device is opened.
plugin::Status prepare_store_value(Device& device);
plugin::Status store_value(Device& device, cudaStream_t stream, void* destination, const void* value, uint64_t bytes);

}  // namespace heddle::cuda
