// The one table through which the plugin calls NVIDIA's libraries. They are found and opened when a device is asked for, never when the
// plugin is loaded, and the plugin links to none of them: it loads where there is no driver and no toolkit, and says why there is no
// device. HEDDLE_CUDA_STANDIN names a library that stands in for all of them (tests/cuda/standin); library/described.h does for plans.
#pragma once

#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <cudnn.h>
#include <nvrtc.h>

#include <string>

#include "library/described.h"

namespace heddle::cuda {

// Pointers by name: api.cudaMallocAsync(...). Of a library that is not there all are null; missing(library) says why.
struct Api {
#define HEDDLE_CUDA_FUNCTION(library, name) decltype(&::name) name = nullptr;
#include "library/functions.inc"
#undef HEDDLE_CUDA_FUNCTION

  // Empty: the library is there, whole. The runtime and NVRTC have to be, the others only where an operator needs them.
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

  // Of what is not here; null: the libraries are NVIDIA's.
  const DeviceDescription* described = nullptr;

  // Opened on first use and kept while the process lives: NVIDIA's libraries do not survive being closed. Any thread.
  static const Api& get();
  // From now on get() is the table of library/described.h. Errors: invalid, when it has been another.
  static plugin::Status describe(std::string_view text);

 private:
  void load();
  std::string missing_[4];
};

}  // namespace heddle::cuda
