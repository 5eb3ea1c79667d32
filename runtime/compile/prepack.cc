#include "compile/prepack.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace heddle {

std::shared_ptr<const Blob> PackCache::find_or_pack(const Blob& content, const std::string& key, uint64_t bytes,
                                                    const std::function<bool(void*)>& fill) {
  const uint64_t hash = XXH64(content.data, static_cast<size_t>(content.bytes), 0);
  const std::string whole =
      std::to_string(hash) + '|' + to_string(content.dtype) + content.shape.text() + '|' + std::to_string(bytes) + '|' + key;
  // Packing under the lock: the same constant is never packed twice, and packing is rare.
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Blob>& entry = entries_[whole];
  if (auto packed = entry.lock()) return packed;
  std::byte* data = nullptr;
  auto packed = Blob::allocate(DType::u8, Shape{static_cast<int64_t>(bytes)}, &data);
  if (!fill(data)) return nullptr;
  entry = packed;
  return packed;
}

int64_t PackCache::bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t total = 0;
  for (const auto& [key, entry] : entries_)
    if (auto packed = entry.lock()) total += packed->bytes;
  return total;
}

}  // namespace heddle
