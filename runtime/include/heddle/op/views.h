// Typed views of inputs and outputs: the parameters of a kernel function. They are borrowed and valid during the call only; do not store
// them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "heddle/abi.h"

namespace heddle {
namespace plugin {

// The extents of a tensor; borrowed.
struct Dims {
  const int64_t* data = nullptr;
  int rank = 0;
  int64_t operator[](int i) const { return data[i < 0 ? i + rank : i]; }
  const int64_t* begin() const { return data; }
  const int64_t* end() const { return data + rank; }
  int64_t count(int first, int last) const {
    int64_t n = 1;
    for (int i = first; i < last; ++i) n *= data[i];
    return n;
  }
};

// A required input; `In<void>` takes any dtype.
template <class T>
struct In {
  using element = T;
  const T* data = nullptr;
  int64_t size = 0;
  Dims dims;
  const heddle_tensor* tensor = nullptr;
  std::add_lvalue_reference_t<const T> operator[](int64_t i) const { return data[i]; }  // not for In<void>
};
// An input that may be absent: test with `if (x)`.
template <class T>
struct OptionalIn : In<T> {
  explicit operator bool() const { return this->tensor != nullptr; }
};
// The values of a variadic last port.
template <class T>
struct Ins {
  using element = T;
  const heddle_tensor* const* tensors = nullptr;
  uint32_t count = 0;
  In<T> operator[](uint32_t i) const {
    const heddle_tensor* t = tensors[i];
    return {static_cast<const T*>(t->data), t->element_count, {t->dims, t->rank}, t};
  }
};
template <class T>
struct Out {
  using element = T;
  T* data = nullptr;
  int64_t size = 0;
  Dims dims;
  heddle_tensor* tensor = nullptr;
  explicit operator bool() const { return tensor != nullptr; }  // false: an optional output that the net leaves out
  // Not for Out<void>.
  std::add_lvalue_reference_t<T> operator[](int64_t i) const { return data[i]; }  // NOLINT(clang-analyzer-core.uninitialized.UndefReturn)
};
template <class T>
struct Outs {
  using element = T;
  heddle_tensor* const* tensors = nullptr;
  uint32_t count = 0;
  Out<T> operator[](uint32_t i) const {
    heddle_tensor* t = tensors[i];
    return {static_cast<T*>(t->data), t->element_count, {t->dims, t->rank}, t};
  }
};

}  // namespace plugin
}  // namespace heddle
