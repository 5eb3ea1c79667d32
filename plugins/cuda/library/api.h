// The one table through which the plugin calls NVIDIA's libraries. They are found and opened when a device is requested, never when the
// plugin is loaded, and the plugin links to none of them: it loads where there is no driver and no toolkit, and reports why there is no
// device. HEDDLE_CUDA_STANDIN names a library that replaces all of them (tests/cuda/standin); library/described.h replaces them for plans.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nvrtc.h>

#include <string>

#include "library/described.h"

namespace heddle::cuda {

// The functions by name: api.cudaMallocAsync(...). All functions of a library that is not installed are null; missing(library) says why.
struct Api {
#define HEDDLE_CUDA_FUNCTION(library, name) decltype(&::name) name = nullptr;
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION

  // Each returns why the library is missing, or an empty string if it is complete. The runtime and NVRTC are required, the others only by
  // operators that use them.
  const std::string& missing_cudart() const {
    return missing_[0];
  }
  const std::string& missing_nvrtc() const {
    return missing_[1];
  }
  const std::string& missing_cublasLt() const {
    return missing_[2];
  }
  const std::string& missing_cudnn() const {
    return missing_[3];
  }

  // The described device, where the real one is not present; null: the libraries are NVIDIA's.
  const DeviceDescription* described = nullptr;

  // Returns the table, opened on first use and kept while the process lives: NVIDIA's libraries do not survive being closed. Thread-safe.
  static const Api& get();
  // Makes get() return the table of library/described.h from now on. Errors: invalid, if get() has returned another one.
  static plugin::Status describe(std::string_view text);

 private:
  void load();
  std::string missing_[4];
};

}  // namespace heddle::cuda
