// GrowingBuffer: memory that no plan could include, because only runs know how much they need: kept from run to run, grown when one needs
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
  // Makes a buffer on the host.
  GrowingBuffer() = default;
  // Makes a buffer on that device; or, with `beside`, on the host in memory that the device copies from and to fast, if it has such memory.
  explicit GrowingBuffer(std::shared_ptr<Device> device, bool beside = false) : device_(std::move(device)), beside_(beside) {}

  // Grows to at least `bytes` bytes; the content is lost if there were fewer. The caller must ensure that the buffer is not in use. Errors:
  // out_of_memory; throws std::bad_alloc for memory of the host.
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
