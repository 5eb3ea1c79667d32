// Changes the current device of the calling thread, which belongs to the embedding program: each class here restores it.
#pragma once

#include "device/errors.h"
#include "heddle/op.h"
#include "library/api.h"

namespace heddle::cuda {

// Makes a device current on this thread until the scope ends.
class CurrentDevice {
 public:
  explicit CurrentDevice(int device) : status_(make_current(device)) {}
  ~CurrentDevice() {
    if (before_ != unchanged) Api::get().cudaSetDevice(before_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;
  // Errors: those of CUDA.
  const plugin::Status& status() const { return status_; }

 private:
  static constexpr int unchanged = -1;
  plugin::Status make_current(int device) {
    int before = unchanged;
    HEDDLE_CUDA_CALL(cudaGetDevice, &before);
    if (before == device) return {};
    HEDDLE_CUDA_CALL(cudaSetDevice, device);
    before_ = before;
    return {};
  }

  int before_ = unchanged;
  const plugin::Status status_;
};

// Brackets the calls that one thread makes during a run: enter() before work for a device, leave() after the last of it. leave() restores
// the device that was current before the first enter().
class EnteredDevice {
 public:
  static plugin::Status enter(int device);
  static void leave();
};

}  // namespace heddle::cuda
