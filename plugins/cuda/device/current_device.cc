#include "device/current_device.h"

namespace heddle::cuda {
namespace {

constexpr int none = -1;
thread_local int before = none;  // the device that was current before the first enter()
thread_local int current = none;

}  // namespace

plugin::Status EnteredDevice::enter(int device) {
  if (before == none) HEDDLE_CUDA_CALL(cudaGetDevice, &before);
  HEDDLE_CUDA_CALL(cudaSetDevice, device);
  current = device;
  return {};
}

void EnteredDevice::leave() {
  if (before != none && before != current) Api::get().cudaSetDevice(before);
  before = current = none;
}

}  // namespace heddle::cuda
