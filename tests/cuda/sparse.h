// Tensors of more than 2^31 elements, of which next to none are ever touched.
#pragma once

#include <sys/mman.h>

#include <memory>

#include "plan_run.h"

namespace heddle::cuda::grid_test {

// Zeros where nothing was written. Null: there are not so many addresses.
inline std::shared_ptr<Blob> sparse_tensor(DType dtype, const Shape& shape) {
  const auto bytes = static_cast<size_t>(shape.element_count() * byte_width(dtype));
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto blob = std::make_shared<Blob>();
  blob->dtype = dtype;
  blob->shape = shape;
  blob->data = static_cast<const std::byte*>(memory);
  blob->bytes = static_cast<int64_t>(bytes);
  blob->owner = std::shared_ptr<const void>(memory, [bytes](const void* p) { munmap(const_cast<void*>(p), bytes); });
  return blob;
}
template <class T>
T* elements_of(const Blob& blob) {
  return reinterpret_cast<T*>(const_cast<std::byte*>(blob.data));
}

}  // namespace heddle::cuda::grid_test
