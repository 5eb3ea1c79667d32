// The settings of the stand-in from the environment. They are read with the properties of a device, which is part of opening one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::cuda::standin {

struct Settings {
  int devices = 2;                                // HEDDLE_CUDA_STANDIN_DEVICES
  int first_device = 0;                           // HEDDLE_CUDA_STANDIN_FIRST_DEVICE, where on the machine they begin
  uint64_t memory_bytes = uint64_t{4} << 30;      // HEDDLE_CUDA_STANDIN_MEMORY, of each
  uint64_t seed = 0;                              // HEDDLE_CUDA_STANDIN_SEED, of orders and delays; 0: streams take turns
  std::string hold;                               // HEDDLE_CUDA_STANDIN_HOLD: while a file of that name exists, no work begins
  bool idle = false;                              // HEDDLE_CUDA_STANDIN_IDLE, 1: calls are checked, and nothing is computed or copied
  std::vector<int> architectures = {75, 80, 90};  // HEDDLE_CUDA_STANDIN_ARCHITECTURES, "75,80,90": what NVRTC compiles for
  int nccl_version = 22809;                       // HEDDLE_CUDA_STANDIN_NCCL_VERSION
  // HEDDLE_CUDA_STANDIN_CACHE: the folder of compiled kernels; else one of the build's.
  std::string cache;

  // Ends the process if a value is no number, instead of using another value than the user's.
  static Settings read();
};

}  // namespace heddle::cuda::standin
