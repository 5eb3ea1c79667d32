#include "net/lasting_blob.h"

#include <sys/mman.h>

#include <cstring>
#include <new>

#include "base/checked.h"

namespace heddle {

std::shared_ptr<Blob> lasting_blob(DType dtype, const Shape& shape, std::byte** mutable_data) {
  constexpr size_t huge_page = size_t{2} << 20;
  const int64_t bytes = byte_width(dtype) * shape.element_count();
  if (static_cast<size_t>(bytes) < huge_page) return Blob::allocate(dtype, shape, mutable_data);
  const auto size = static_cast<size_t>(align_up(bytes, 64)) + 64;  // one more cache line, like Blob::allocate
  constexpr std::align_val_t alignment{huge_page};
  const std::shared_ptr<void> memory(::operator new(size, alignment), [](void* p) { ::operator delete(p, alignment); });
  (void)::madvise(memory.get(), size / huge_page * huge_page, MADV_HUGEPAGE);
  std::memset(memory.get(), 0, size);
  *mutable_data = static_cast<std::byte*>(memory.get());
  return std::make_shared<Blob>(Blob{dtype, shape, *mutable_data, bytes, memory});
}

}  // namespace heddle
