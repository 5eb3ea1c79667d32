#include "device/growing_buffer.h"

#include <algorithm>

namespace heddle {

Status GrowingBuffer::grow(int64_t bytes) {
  if (bytes_ >= bytes && data_) return {};
  const int64_t wanted = std::max<int64_t>(bytes, 1);
  data_ = nullptr;
  bytes_ = 0;
  if (on_device()) {
    there_ = {};  // freed first, so that both need not exist at once
    HEDDLE_TRY(there_, device_->allocate(wanted));
    data_ = static_cast<std::byte*>(there_.get());
  } else if (device_ && device_->pins()) {
    pinned_ = {};
    HEDDLE_TRY(pinned_, device_->allocate_pinned(wanted));
    data_ = static_cast<std::byte*>(pinned_.get());
  } else {
    on_host_ = Blob::allocate(DType::u8, Shape{wanted}, &data_);
  }
  bytes_ = bytes;
  return {};
}

}  // namespace heddle
