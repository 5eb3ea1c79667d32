// Operators that pick elements by index or by value: cases that ONNX's node tests lack.
#include <gtest/gtest.h>

#include <array>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

Tensor indices(const Shape& shape, const std::vector<int64_t>& v) {
  return tensor<int64_t>(shape, v);
}

TEST(Gather, NamesTheIndexThatIsOutsideItsAxis) {
  const Tensor table = tensor<float>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (int64_t bad : {int64_t{4}, int64_t{-5}, INT64_MAX, INT64_MIN}) {
    const std::string text = error_of(call_of("Gather", {table, indices({2}, {0, bad})}));
    EXPECT_NE(text.find("index " + std::to_string(bad)), std::string::npos) << text;
    EXPECT_NE(text.find("axis 0 has 4 elements"), std::string::npos) << text;
  }
  EXPECT_NE(error_of(call_of("GatherND", {table, indices({1, 2}, {1, 2})})).find("axis 1 has 2 elements"), std::string::npos);
  EXPECT_NE(error_of(call_of("GatherElements", {table, indices({1, 2}, {4, 0})})).find("index 4"), std::string::npos);
}

TEST(Gather, TakesEveryWidthAndLongRowsInAnySplit) {
  for (int64_t row : {1, 3, 16, 100000}) {
    std::vector<int16_t> data(static_cast<size_t>(5 * row));
    for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<int16_t>(i * 13);
    OperatorCall call = call_of("Gather", {tensor<int16_t>({5, row}, data), tensor<int32_t>({3}, {4, -5, 2})});
    call.split_seed = 9;
    const auto y = run(call);
    ASSERT_EQ(y.size(), 1u);
    const auto v = values<int16_t>(*y[0]);
    for (int64_t i = 0; i < row; ++i) {
      ASSERT_EQ(v[static_cast<size_t>(i)], data[static_cast<size_t>(4 * row + i)]);
      ASSERT_EQ(v[static_cast<size_t>(row + i)], data[static_cast<size_t>(i)]);
      ASSERT_EQ(v[static_cast<size_t>(2 * row + i)], data[static_cast<size_t>(2 * row + i)]);
    }
  }
}

TEST(Gather, OfNothingIsNothing) {
  EXPECT_EQ(run1("Gather", {tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6}), indices({0}, {})})->shape, (Shape{0, 2}));
  EXPECT_NE(error_of(call_of("Gather", {tensor<float>({0, 2}, {}), indices({1}, {0})})).find("axis 0 has 0 elements"), std::string::npos);
}

TEST(TopK, GivesTiesToTheLowerIndexAndCountsNanAsLargest) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = run(call_of("TopK", {tensor<float>({6}, {2, 7, nan, 7, 1, 2}), indices({1}, {4})}, {}, 2));
  ASSERT_EQ(y.size(), 2u);
  EXPECT_EQ(values<int64_t>(*y[1]), (std::vector<int64_t>{2, 1, 3, 0}));
  const auto low = run(call_of("TopK", {tensor<int8_t>({2, 3}, {5, -1, -1, 0, 0, -128}), indices({1}, {2})}, {{"largest", int64_t{0}}}, 2));
  ASSERT_EQ(low.size(), 2u);
  EXPECT_EQ(values<int8_t>(*low[0]), (std::vector<int8_t>{-1, -1, -128, 0}));
  EXPECT_EQ(values<int64_t>(*low[1]), (std::vector<int64_t>{1, 2, 2, 0}));
  EXPECT_NE(error_of(call_of("TopK", {tensor<float>({2}, {1, 2}), indices({1}, {3})}, {}, 2)).find("K is 3"), std::string::npos);
}

TEST(OneHot, IgnoresIndicesOutsideTheDepth) {
  const Tensor y = run1("OneHot", {tensor<float>({4}, {1, -1, 3, -4}), tensor<int32_t>({}, {3}), tensor<uint8_t>({2}, {7, 9})});
  EXPECT_EQ(values<uint8_t>(*y), (std::vector<uint8_t>{7, 9, 7, 7, 7, 9, 7, 7, 7, 7, 7, 7}));
}

TEST(NonZero, IsBoundedAndCompact) {
  const Tensor y = run1("NonZero", {tensor<float>({2, 3}, {0, 1.5f, -0.0f, -2, 0, 3})});
  EXPECT_EQ(y->shape, (Shape{2, 3}));
  EXPECT_EQ(values<int64_t>(*y), (std::vector<int64_t>{0, 1, 1, 1, 0, 2}));
  EXPECT_EQ(run1("NonZero", {tensor<int16_t>({2, 2}, {0, 0, 0, 0})})->shape, (Shape{2, 0}));
}

TEST(Compress, TakesFewerConditionsThanElements) {
  const Tensor x = tensor<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(values<int32_t>(*run1("Compress", {x, booleans({4}, {0, 1, 0, 1})})), (std::vector<int32_t>{2, 4}));
  const Tensor columns = run1("Compress", {x, booleans({2}, {0, 1})}, {{"axis", int64_t{1}}});
  EXPECT_EQ(columns->shape, (Shape{2, 1}));
  EXPECT_EQ(values<int32_t>(*columns), (std::vector<int32_t>{2, 5}));
  EXPECT_NE(error_of(call_of("Compress", {x, booleans({3}, {1, 1, 1})}, {{"axis", int64_t{0}}})).find("condition has 3"),
            std::string::npos);
}

TEST(Unique, KeepsTheOrderOfFirstOccurrenceWhenUnsorted) {
  const auto y = run(call_of("Unique", {tensor<int64_t>({6}, {4, 2, 4, 9, 2, 4})}, {{"sorted", int64_t{0}}}, 4));
  ASSERT_EQ(y.size(), 4u);
  EXPECT_EQ(values<int64_t>(*y[0]), (std::vector<int64_t>{4, 2, 9}));
  EXPECT_EQ(values<int64_t>(*y[1]), (std::vector<int64_t>{0, 1, 3}));
  EXPECT_EQ(values<int64_t>(*y[2]), (std::vector<int64_t>{0, 1, 0, 2, 1, 0}));
  EXPECT_EQ(values<int64_t>(*y[3]), (std::vector<int64_t>{3, 2, 1}));
}

TEST(CumSum, WorksAlongAnyAxisInPlaceOfPlainLoops) {
  const Tensor x = tensor<int32_t>({2, 3, 2}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  const auto sum = [&](int32_t axis, int64_t exclusive, int64_t reverse) {
    return values<int32_t>(*run1("CumSum", {x, tensor<int32_t>({}, {axis})}, {{"exclusive", exclusive}, {"reverse", reverse}}));
  };
  EXPECT_EQ(sum(1, 0, 0), (std::vector<int32_t>{1, 2, 4, 6, 9, 12, 7, 8, 16, 18, 27, 30}));
  EXPECT_EQ(sum(-1, 1, 1), (std::vector<int32_t>{2, 0, 4, 0, 6, 0, 8, 0, 10, 0, 12, 0}));
  EXPECT_NE(error_of(call_of("CumSum", {x, tensor<int32_t>({}, {3})})).find("axis is 3"), std::string::npos);
}

// T: the type of the numbers; the operator gets them as `dtype`, and none of the sums is rounded.
template <class T>
void expect_running_sums(int64_t dtype) {
  for (const auto& [before, length, after] :
       {std::array<int64_t, 3>{1, 5, 130}, {3, 70, 7}, {70, 67, 1}, {1, 300, 1}, {2, 9, 1100}, {5, 1, 3}}) {
    std::vector<T> x(static_cast<size_t>(before * length * after));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 3);
    const Tensor given = run1("Cast", {tensor<T>({before, length, after}, x)}, {{"to", dtype}});
    for (const int64_t exclusive : {0, 1})
      for (const int64_t reverse : {0, 1}) {
        std::vector<T> expected(x.size());
        for (int64_t line = 0; line < before * after; ++line) {
          T sum = 0;
          for (int64_t i = 0; i < length; ++i) {
            const auto at = static_cast<size_t>((line / after * length + (reverse ? length - 1 - i : i)) * after + line % after);
            expected[at] = static_cast<T>(exclusive ? sum : sum + x[at]);
            sum = static_cast<T>(sum + x[at]);
          }
        }
        OperatorCall call = call_of("CumSum", {given, tensor<int64_t>({}, {1})}, {{"exclusive", exclusive}, {"reverse", reverse}});
        call.split_seed = 3;
        EXPECT_EQ(values<T>(*run1("CastLike", {run(call).at(0), tensor<T>({}, {0})})), expected)
            << before << " x " << length << " x " << after << ", dtype " << dtype << ", " << exclusive << reverse;
      }
  }
}

TEST(CumSum, EqualsPlainLoopsAlongEveryAxis) {
  constexpr int64_t f32 = 1, u8 = 2, i8 = 3, i64 = 7, f16 = 10, f64 = 11, bf16 = 16;
  for (const int64_t dtype : {f32, f16}) expect_running_sums<float>(dtype);
  expect_running_sums<double>(f64);
  expect_running_sums<int64_t>(i64);
  expect_running_sums<uint8_t>(u8);
  expect_running_sums<int8_t>(i8);
  const Tensor ones = run1("Cast", {tensor<float>({3, 100}, std::vector<float>(300, 1))}, {{"to", bf16}});
  const std::vector<float> sums = values<float>(*run1("Cast", {run1("CumSum", {ones, tensor<int64_t>({}, {-1})})}, {{"to", f32}}));
  for (size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], static_cast<float>(i % 100 + 1));
}

TEST(ReverseSequence, RefusesALengthBeyondTheTimeAxis) {
  EXPECT_NE(error_of(call_of("ReverseSequence", {tensor<float>({2, 1}, {1, 2}), indices({1}, {3})})).find("sequence_lens[0] 3 is outside"),
            std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
