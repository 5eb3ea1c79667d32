// GrowingBuffer: memory that no plan could hold, because only runs know how much they need: kept from run to run, grown when one needs
// more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "device/device.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

class GrowingBuffer {
 public:
  // On the host.
  GrowingBuffer() = default;
  // On that device; or, with `beside`, on the host where copies of the device are fast from and to, if it has such memory.
  explicit GrowingBuffer(std::shared_ptr<Device> device, bool beside = false) : device_(std::move(device)), beside_(beside) {}

  // To at least so many bytes, whose content is lost if they were fewer. Nobody uses it just then. Errors: out_of_memory; throws
  // std::bad_alloc for memory of the host.
  Status grow(int64_t bytes);
  std::byte* data() const { return data_; }
  int64_t bytes() const { return bytes_; }
  bool on_device() const { return device_ && !beside_; }

 private:
  std::shared_ptr<Device> device_;
  bool beside_ = false;
  std::shared_ptr<const Blob> on_host_;
  PinnedMemory pinned_;
  DeviceMemory there_;
  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
};

}  // namespace heddle
