// Which device is current on the calling thread belongs to the embedding program: whatever changes it puts it back.
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
  // Errors: CUDA's.
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

// Over the calls of one thread's stay in a run: enter() before work for a device, leave() after the last, which puts back what was current
// before the first.
class EnteredDevice {
 public:
  static plugin::Status enter(int device);
  static void leave();
};

}  // namespace heddle::cuda
