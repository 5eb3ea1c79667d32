// For tests of operators that take several layouts: random tensors, channels-last copies, comparisons.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "operators/pointwise_support.h"

namespace heddle::testing {

using Ints = std::vector<int64_t>;

inline Tensor random_tensor(const Shape& shape, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<float> v(static_cast<size_t>(shape.element_count()));
  for (float& x : v) x = static_cast<float>(static_cast<int32_t>(random() % 2001) - 1000) / 500.0f;
  return tensor<float>(shape, v);
}

inline heddle_layout channels_last_layout(int rank) {
  heddle_layout layout = {};
  layout.rank = static_cast<uint8_t>(rank);
  for (int i = 1; i + 1 < rank; ++i) layout.order[i] = static_cast<uint8_t>(i + 1);
  layout.order[rank - 1] = 1;
  return layout;
}

// The bytes of a row-major f32 tensor N C S... in the order N S... C, or back. The shape stays logical.
inline Tensor reorder_channels(const Tensor& x, bool to_channels_last) {
  const std::vector<float> from = values<float>(*x);
  std::vector<float> to(from.size());
  const int64_t batch = x->shape[0], channels = x->shape[1];
  const int64_t pixels = from.empty() ? 0 : static_cast<int64_t>(from.size()) / (batch * channels);
  for (int64_t n = 0; n < batch; ++n) {
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t p = 0; p < pixels; ++p) {
        const auto row_major = static_cast<size_t>((n * channels + c) * pixels + p);
        const auto last = static_cast<size_t>((n * pixels + p) * channels + c);
        to_channels_last ? to[last] = from[row_major] : to[row_major] = from[last];
      }
    }
  }
  return tensor<float>(x->shape, to);
}

inline void expect_close(const std::vector<float>& got, const std::vector<float>& want, float tolerance, const std::string& what) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (size_t i = 0; i < got.size(); ++i)
    ASSERT_NEAR(got[i], want[i], tolerance * (1.0f + std::fabs(want[i]))) << what << ", element " << i;
}

// Computes an epilogue op by the unfused operator.
inline Tensor apply_epilogue_op(const Tensor& y, const OperatorCall::EpilogueOp& epilogue_op, const std::vector<Tensor>& inputs) {
  if (epilogue_op.operand_input < 0) return evaluate("acc = x0; " + epilogue_op.expression, {y});
  return evaluate("acc = x0; operand = x1; " + epilogue_op.expression, {y, inputs[static_cast<size_t>(epilogue_op.operand_input)]});
}

inline void expect_same_bits(const Tensor& got, const Tensor& want, const std::string& what) {
  ASSERT_EQ(got->bytes, want->bytes) << what;
  if (want->bytes > 0) {
    EXPECT_EQ(std::memcmp(got->data, want->data, static_cast<size_t>(want->bytes)), 0) << what;
  }
}

}  // namespace heddle::testing
