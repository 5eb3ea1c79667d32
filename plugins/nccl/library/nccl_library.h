// NCCL, and the CUDA runtime that the process uses: the functions of both by pointers, looked up when they are needed first. The plugin is
// linked to neither.
#pragma once

#include <string>

#include "library/declarations.h"
#include "shared/operator_api.h"
#include "shared/ranks/device_collectives.h"

namespace heddle::nccl {

using plugin::Status;

struct Library {
#define HEDDLE_NCCL_FUNCTION(library, result, name, parameters) result(*name) parameters = nullptr;
#include "library/functions.inc"
#undef HEDDLE_NCCL_FUNCTION

  // Why there is none here; empty: there is.
  const std::string& missing() const {
    return missing_;
  }
  int32_t version() const {
    return version_;
  }  // 22809 is 2.28.9

  // Returns the table, which is made on first use and stays while the process lives. Thread-safe.
  static const Library& get();

 private:
  void load();
  std::string missing_;
  int32_t version_ = 0;
};

// The object of the resource "nccl.library".
class LoadedLibrary : public operators::DeviceLibrary {
 public:
  explicit LoadedLibrary(const plugin::ResourceRequest&);
  static Status status();
};

// Reads the setting HEDDLE_NCCL_SUMS. Errors: invalid.
Status read_sums(bool* of_library);

// Returns "2.28.9".
std::string version_text(int32_t version);

// Returns the status of a call that failed.
Status failed(const char* call, Result result);
Status failed(const char* call, CudaError error);

// Calls a function of the table. If it fails, returns from the enclosing function, which must return a Status.
#define HEDDLE_NCCL_CUDA_CALL(name, ...)                                                                              \
  do {                                                                                                                \
    const ::heddle::nccl::CudaError heddle_nccl_error_ = ::heddle::nccl::Library::get().name(__VA_ARGS__);            \
    if (heddle_nccl_error_ != ::heddle::nccl::cuda_success) return ::heddle::nccl::failed(#name, heddle_nccl_error_); \
  } while (false)

// Makes a device current on this thread until the scope ends: it belongs to the embedding program.
class CurrentDevice {
 public:
  explicit CurrentDevice(int32_t device) : status_(enter(device)) {}
  ~CurrentDevice();
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  const Status& status() const { return status_; }

 private:
  Status enter(int32_t device);
  int32_t before_ = -1;  // -1: it was current already
  const Status status_;
};

}  // namespace heddle::nccl
