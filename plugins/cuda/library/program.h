// Program: source in CUDA C++, compiled by NVRTC for one device's architecture and loaded there; where NVRTC does not know the
// architecture, as for a newer device, it is compiled to PTX for the highest one below, from which the driver makes the device's own code.
// It is compiled once for each source, architecture and version of NVRTC, and kept in the process, and on disk in a folder of the user.
//
// HEDDLE_CUDA_CACHE names the folder ("off": none); else it is heddle/cuda in XDG_CACHE_HOME or ~/.cache. A file there is used only if it
// and the folder belong to the user, no other user may write them, and its checksum fits; else the program is compiled anew.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "device/cuda_device.h"
#include "heddle/op.h"

namespace heddle::cuda {

class Program {
 public:
  // `source` is compiled after text/element.cuh. With `contract`, products and sums round once (--fmad=true); not for programs that must
  // give the host's bits. One source is compiled once, and loaded once for all devices of one architecture, however many threads request it
  // at the same time; different sources are compiled at the same time. Errors: those of NVRTC, with the first lines of its log.
  // Thread-safe.
  static plugin::Status make(const Device& device, const std::string& source, bool contract, std::shared_ptr<const Program>* program);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  plugin::Status kernel(const char* name, cudaKernel_t* kernel) const;

 private:
  friend class Programs;
  explicit Program(cudaLibrary_t library) : library_(library) {}
  const cudaLibrary_t library_;
  // The losses of the devices that use the program. When one of them is lost the library is not unloaded: every call of CUDA fails then.
  mutable std::vector<std::shared_ptr<const DeviceLoss>> losses_;
};

// One launch on a stream of the device, which must be current: `parameters` are the bytes of the kernel's one struct, read during the call.
struct LaunchShape {
  unsigned int blocks = 1, threads = 1;
};
plugin::Status launch(Device& device, cudaKernel_t kernel, LaunchShape shape, const void* parameters, cudaStream_t stream);

}  // namespace heddle::cuda
