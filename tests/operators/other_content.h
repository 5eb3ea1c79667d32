// The calls of other_content_test.cc.
#pragma once

#include <string>
#include <vector>

#include "operators/pointwise_support.h"

namespace heddle::testing {

// One input of an operator: a call that works, and contents of the same shape to run with instead.
struct OtherContentRow {
  std::string type, port;
  OperatorCall call;
  std::vector<Tensor> others;  // smaller, larger, impossible
};

// Tensors of one dimension, scalars, and small numbers in any shape.
inline Tensor ints(const std::vector<int64_t>& v) {
  return tensor<int64_t>({static_cast<int64_t>(v.size())}, v);
}
inline Tensor number(int64_t v) {
  return tensor<int64_t>({}, {v});
}
inline Tensor floats(const std::vector<float>& v) {
  return tensor<float>({static_cast<int64_t>(v.size())}, v);
}
inline Tensor scalar(float v) {
  return tensor<float>({}, {v});
}
inline Tensor flag(bool v) {
  return booleans({}, {static_cast<uint8_t>(v)});
}

template <class T = float>
Tensor counted(const Shape& shape) {
  std::vector<T> v(static_cast<size_t>(shape.element_count()));
  for (size_t i = 0; i < v.size(); ++i) v[i] = static_cast<T>(i % 11);
  return tensor<T>(shape, v);
}
inline constexpr int64_t least = INT64_MIN, most = INT64_MAX;

// Returns one row for each input that an operator reads to plan or to index.
std::vector<OtherContentRow> other_content_rows();

}  // namespace heddle::testing
