#include "collective/reductions.h"

#include <algorithm>
#include <bit>
#include <string>
#include <type_traits>

#include "shared/dtype_dispatch.h"
#include "vector/convert.h"

namespace heddle::cpu {

namespace {

// Integers wrap.
template <class T>
using Wrapping = std::conditional_t<std::is_integral_v<T>, std::make_unsigned<T>, std::type_identity<T>>;
template <class T>
T sum_of(T a, T b) {
  using U = typename Wrapping<T>::type;
  return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
}
template <class T>
T product_of(T a, T b) {
  using U = typename Wrapping<T>::type;
  return static_cast<T>(static_cast<U>(a) * static_cast<U>(b));
}
template <class T>
bool is_nan(T a) {
  if constexpr (std::is_floating_point_v<T>) return a != a;
  return false;
}

// `result` may be `a`.
template <class T>
void combine_elements(Reduction reduction, const T* a, const T* b, int64_t count, T* result) {
  switch (reduction) {
    case Reduction::sum:
    case Reduction::mean:
      for (int64_t i = 0; i < count; ++i) result[i] = sum_of(a[i], b[i]);
      break;
    case Reduction::prod:
      for (int64_t i = 0; i < count; ++i) result[i] = product_of(a[i], b[i]);
      break;
    case Reduction::min:
      for (int64_t i = 0; i < count; ++i) result[i] = b[i] < a[i] || is_nan(b[i]) ? b[i] : a[i];
      break;
    case Reduction::max:
      for (int64_t i = 0; i < count; ++i) result[i] = a[i] < b[i] || is_nan(b[i]) ? b[i] : a[i];
      break;
  }
}

}  // namespace

PartElements TensorOfParts::elements() const {
  const auto data = [](const void* user, size_t part) -> const void* {
    const auto& self = *static_cast<const TensorOfParts*>(user);
    return self.parts[part]->inputs[self.tensor]->data;
  };
  return {this, data, parts.size()};
}

void PartReducer::reduce_piece(int64_t first, int64_t count, void* piece) const {
  switch (compute_dtype(to_)) {
    case HEDDLE_F64:
      return reduce_as<double>(first, count, piece);
    case HEDDLE_I32:
      return reduce_as<int32_t>(first, count, piece);
    case HEDDLE_I64:
      return reduce_as<int64_t>(first, count, piece);
    default:
      return reduce_as<float>(first, count, piece);
  }
}

template <class T>
void PartReducer::reduce_as(int64_t first, int64_t count, void* piece) const {
  alignas(64) T computed[piece_elements];
  const bool in_place = to_ == dtype_of<T>::id;
  T* const result = in_place ? static_cast<T*>(piece) : computed;
  combine(0, parts_.parts, first, count, result);
  if (reduction_ == Reduction::mean)
    for (int64_t i = 0; i < count; ++i) result[i] /= static_cast<T>(divisor_);
  if (!in_place) convert(dtype_of<T>::id, result, to_, piece, count);
}

// The elements of one part where they are, if they need no conversion; else null.
template <class T>
const T* PartReducer::elements_of(size_t part, int64_t first) const {
  return from_ == dtype_of<T>::id ? static_cast<const T*>(parts_.data(parts_.user, part)) + first : nullptr;
}

template <class T>
void PartReducer::combine(size_t begin, size_t end, int64_t first, int64_t count, T* result) const {
  if (end - begin == 1) {
    const char* const data = static_cast<const char*>(parts_.data(parts_.user, begin));
    return convert(from_, data + first * static_cast<int64_t>(byte_width(from_)), dtype_of<T>::id, result, count);
  }
  const size_t middle = begin + std::bit_floor(end - begin - 1);  // the left tree is full
  const T* left = middle - begin == 1 ? elements_of<T>(begin, first) : nullptr;
  if (!left) combine(begin, middle, first, count, result), left = result;
  const T* right = end - middle == 1 ? elements_of<T>(middle, first) : nullptr;
  alignas(64) T computed[piece_elements];
  if (!right) combine(middle, end, first, count, computed), right = computed;
  combine_elements(reduction_, left, right, count, result);
}

}  // namespace heddle::cpu
