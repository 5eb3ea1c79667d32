// What the stand-in is told by the environment. Read when the properties of a device are asked for, as whoever opens one does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::cuda::standin {

struct Settings {
  int devices = 2;                                // HEDDLE_CUDA_STANDIN_DEVICES
  uint64_t memory_bytes = uint64_t{4} << 30;      // HEDDLE_CUDA_STANDIN_MEMORY, of each
  uint64_t seed = 0;                              // HEDDLE_CUDA_STANDIN_SEED, of orders and delays; 0: streams take turns
  std::string hold;                               // HEDDLE_CUDA_STANDIN_HOLD: while there is a file of that name, no work begins
  bool idle = false;                              // HEDDLE_CUDA_STANDIN_IDLE, 1: calls are looked at, and nothing is computed or copied
  std::vector<int> architectures = {75, 80, 90};  // HEDDLE_CUDA_STANDIN_ARCHITECTURES, "75,80,90": what NVRTC compiles for
  // HEDDLE_CUDA_STANDIN_CACHE: the folder of compiled kernels; else one of the build's.
  std::string cache;

  // Ends the process where a value is no number: whoever set it does not want another.
  static Settings read();
};

}  // namespace heddle::cuda::standin
