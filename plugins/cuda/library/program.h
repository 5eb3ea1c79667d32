// Program: source in CUDA C++, compiled by NVRTC for one device's architecture and loaded there; where NVRTC does not know the
// architecture, as that of a newer device, to PTX for the highest below it, of which the driver makes the device's own code. Compiled once
// for each source, architecture and version of NVRTC: what was compiled is kept in the process, and on disk in a folder of the user's own.
//
// HEDDLE_CUDA_CACHE names the folder ("off": none); else it is heddle/cuda in XDG_CACHE_HOME or ~/.cache. A file there is used when it and
// the folder are the user's own and nobody else may write them, and when its checksum fits; else it is compiled anew.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda_device.h"
#include "heddle/op.h"

namespace heddle::cuda {

class Program {
 public:
  // `source` is compiled after text/element.cuh. With `contract` products and sums round once (--fmad=true): not for what has to have the
  // host's bits. One source is compiled once, and loaded once for all devices of one architecture, however many threads ask for it at the
  // same time; different sources are compiled at the same time. Errors: what NVRTC says, with the first lines of its log. Any thread.
  static plugin::Status make(const Device& device, const std::string& source, bool contract, std::shared_ptr<const Program>* program);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  plugin::Status kernel(const char* name, cudaKernel_t* kernel) const;

 private:
  friend class Programs;
  explicit Program(cudaLibrary_t library) : library_(library) {}
  const cudaLibrary_t library_;
  // Of the devices that work with it. When one of them is lost the library is not unloaded: every call of CUDA fails then.
  mutable std::vector<std::shared_ptr<const DeviceLoss>> losses_;
};

// One launch on a stream of the device, which is current: `parameters` are the bytes of the kernel's one struct, taken during the
// call.
struct LaunchShape {
  unsigned int blocks = 1, threads = 1;
};
plugin::Status launch(Device& device, cudaKernel_t kernel, LaunchShape shape, const void* parameters, cudaStream_t stream);

}  // namespace heddle::cuda
