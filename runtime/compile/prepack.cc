#include "compile/prepack.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/checked.h"

namespace heddle {
namespace {

// Packed weights are read once a run from end to end: in huge pages where the system gives them, whole ones only, so that none is wasted.
// Only they: they live as long as a session, and memory so aligned that comes and goes would leave holes in the heap.
std::shared_ptr<Blob> allocate_packed(uint64_t bytes, std::byte** data) {
  constexpr uint64_t huge_page = uint64_t{2} << 20;
  const Shape shape = {static_cast<int64_t>(bytes)};
  if (bytes < huge_page) return Blob::allocate(DType::u8, shape, data);
  constexpr std::align_val_t alignment{huge_page};
  const auto size = static_cast<uint64_t>(align_up(static_cast<int64_t>(bytes), 64) +
                                          64);  // one line more, as Blob::allocate does: vector loads may read past the end
  const std::shared_ptr<void> memory(::operator new(size, alignment), [](void* p) { ::operator delete(p, alignment); });
  (void)::madvise(memory.get(), size / huge_page * huge_page, MADV_HUGEPAGE);
  std::memset(memory.get(), 0, size);
  *data = static_cast<std::byte*>(memory.get());
  return std::make_shared<Blob>(Blob{DType::u8, shape, *data, static_cast<int64_t>(bytes), memory});
}

}  // namespace

std::shared_ptr<const Blob> PackCache::find_or_pack(const Blob& content, const std::string& key, uint64_t bytes,
                                                    const std::function<bool(void*)>& fill) {
  const uint64_t hash = content.data ? XXH64(content.data, static_cast<size_t>(content.bytes), 0) : 0;
  const std::string whole =
      std::to_string(hash) + '|' + to_string(content.dtype) + content.shape.text() + '|' + std::to_string(bytes) + '|' + key;
  // Packing under the lock: the same constant is never packed twice, and packing is rare.
  const std::lock_guard lock(mutex_);
  std::weak_ptr<const Blob>& entry = entries_[whole];
  if (auto packed = entry.lock()) return packed;
  std::byte* data = nullptr;
  auto packed = allocate_packed(bytes, &data);
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
