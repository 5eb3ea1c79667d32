// The CUDA plugin: GPUs as devices, and kernels for them. It calls no NVIDIA library until a device is requested. docs/cuda.md.
#include "device/cuda_device.h"
#include "heddle/op.h"
#include "kernels/kernel_families.h"

HEDDLE_PLUGIN("cuda", "1.0", plugin) {
  static heddle_device_backend backend;
  backend = heddle::cuda::backend(plugin.host());
  plugin.add(&backend);
#define HEDDLE_CUDA_FAMILY_ADDED(name) heddle::cuda::add_##name(plugin);
  HEDDLE_CUDA_FAMILIES(HEDDLE_CUDA_FAMILY_ADDED)
#undef HEDDLE_CUDA_FAMILY_ADDED
}
