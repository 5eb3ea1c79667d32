// Operators that pick elements by index or by value: cases that ONNX's node tests lack.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <type_traits>

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

template <class T, class Index>
void expect_elements_gathered() {
  constexpr int64_t rows = 5, columns = 200;
  std::vector<T> data(rows * columns);
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<T>(i * 31 + 1);
  for (const int64_t axis : {0, 1}) {
    const int64_t bound = axis == 0 ? rows : columns;
    std::vector<Index> places;
    std::vector<T> expected;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t c = 0; c < 150; ++c) {
        const int64_t index = (r * 7 + c * 13) % (2 * bound) - bound, at = index < 0 ? index + bound : index;
        places.push_back(static_cast<Index>(index));
        expected.push_back(data[static_cast<size_t>(axis == 0 ? at * columns + c : r * columns + at)]);
      }
    const auto call_with = [&](const std::vector<Index>& v) {
      OperatorCall call = call_of("GatherElements", {tensor<T>({rows, columns}, data), tensor<Index>({rows, 150}, v)}, {{"axis", axis}});
      call.split_seed = 3;
      return call;
    };
    EXPECT_EQ(values<T>(*run(call_with(places)).at(0)), expected) << "axis " << axis << ", widths " << sizeof(T) << " " << sizeof(Index);
    for (const Index bad : {static_cast<Index>(bound), static_cast<Index>(-bound - 1), std::numeric_limits<Index>::max(),
                            std::numeric_limits<Index>::min()}) {
      std::vector<Index> wrong = places;
      wrong[731] = bad;
      EXPECT_NE(error_of(call_with(wrong)).find("index " + std::to_string(bad) + " "), std::string::npos) << error_of(call_with(wrong));
    }
  }
}

TEST(GatherElements, TakesEveryWidthAlongEveryAxis) {
  expect_elements_gathered<uint8_t, int64_t>();
  expect_elements_gathered<int16_t, int32_t>();
  expect_elements_gathered<float, int64_t>();
  expect_elements_gathered<float, int32_t>();
  expect_elements_gathered<double, int64_t>();
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

// Few and many of short and long lines; most numbers occur several times.
template <class T>
void expect_sorted_prefix() {
  for (const auto& [before, n, after] : {std::array<int64_t, 3>{3, 70, 5}, {2, 1000, 1}, {4, 1, 3}, {1, 300, 2}})
    for (const int64_t k : {0, 1, 3, 16, 17, 40, 70, 299, 1000}) {
      if (k > n) continue;
      std::vector<T> x(static_cast<size_t>(before * n * after));
      for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(static_cast<double>(i * 7919 % 101) - (std::is_signed_v<T> ? 50 : 0));
      for (const int64_t largest : {0, 1}) {
        std::vector<T> values_expected(static_cast<size_t>(before * k * after));
        std::vector<int64_t> indices_expected(values_expected.size());
        for (int64_t line = 0; line < before * after; ++line) {
          const auto at = [&](int64_t i, int64_t count) { return static_cast<size_t>((line / after * count + i) * after + line % after); };
          std::vector<int64_t> order(static_cast<size_t>(n));
          std::iota(order.begin(), order.end(), 0);
          std::stable_sort(order.begin(), order.end(),
                           [&](int64_t a, int64_t b) { return largest ? x[at(a, n)] > x[at(b, n)] : x[at(a, n)] < x[at(b, n)]; });
          for (int64_t i = 0; i < k; ++i) {
            indices_expected[at(i, k)] = order[static_cast<size_t>(i)];
            values_expected[at(i, k)] = x[at(order[static_cast<size_t>(i)], n)];
          }
        }
        OperatorCall call =
            call_of("TopK", {tensor<T>({before, n, after}, x), indices({1}, {k})}, {{"axis", int64_t{1}}, {"largest", largest}}, 2);
        call.split_seed = 3;
        const auto y = run(call);
        ASSERT_EQ(y.size(), 2u);
        EXPECT_EQ(values<int64_t>(*y[1]), indices_expected) << k << " of " << n << ", width " << sizeof(T);
        EXPECT_EQ(values<T>(*y[0]), values_expected) << k << " of " << n << ", width " << sizeof(T);
      }
    }
}

TEST(TopK, IsTheFrontOfAStableSort) {
  expect_sorted_prefix<float>();
  expect_sorted_prefix<double>();
  expect_sorted_prefix<int8_t>();
  expect_sorted_prefix<uint16_t>();
  expect_sorted_prefix<int64_t>();
  expect_sorted_prefix<uint64_t>();
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const auto y = run(call_of("TopK", {tensor<float>({8}, {0, -inf, nan, -0.0f, inf, -nan, -1, 0}), indices({1}, {8})}, {}, 2));
  EXPECT_EQ(values<int64_t>(*y.at(1)), (std::vector<int64_t>{2, 5, 4, 0, 3, 7, 6, 1}));
}

// Boxes in a row, each of which covers a third of the next one; scores are equal in pairs.
TEST(NonMaxSuppression, TakesTheBestFirstAndTheLowerIndexOfEqualOnes) {
  constexpr int64_t count = 40;
  std::vector<float> boxes, scores;
  for (int64_t i = 0; i < count; ++i) {
    const auto left = static_cast<float>(2 * i);
    boxes.insert(boxes.end(), {3, left + 3, 0, left});  // the corners are the wrong way round
    scores.push_back(static_cast<float>(i / 2 * 7 % 20));
  }
  const auto select = [&](float threshold, int64_t most) {
    return values<int64_t>(*run1("NonMaxSuppression", {tensor<float>({1, count, 4}, boxes), tensor<float>({1, 1, count}, scores),
                                                       indices({1}, {most}), tensor<float>({1}, {threshold}), tensor<float>({1}, {0.5f})}));
  };
  for (const float threshold : {0.1f, 0.3f})
    for (const int64_t most : {3, 40}) {
      std::vector<int64_t> order(count), expected, kept;
      std::iota(order.begin(), order.end(), 0);
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)]; });
      for (const int64_t i : order) {
        // Neighbours share 3 of 15.
        const bool covered = threshold < 0.2f && std::any_of(kept.begin(), kept.end(), [&](int64_t k) { return std::abs(k - i) == 1; });
        if (covered || scores[static_cast<size_t>(i)] <= 0.5f || static_cast<int64_t>(kept.size()) == most) continue;
        kept.push_back(i);
        expected.insert(expected.end(), {0, 0, i});
      }
      EXPECT_EQ(select(threshold, most), expected) << threshold << ", " << most;
    }
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

template <class T>
void expect_distinct(const std::vector<T>& x) {
  std::vector<T> distinct = x;
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  std::vector<int64_t> firsts, members, counts;
  for (const T& value : distinct) {
    firsts.push_back(std::find(x.begin(), x.end(), value) - x.begin());
    counts.push_back(std::count(x.begin(), x.end(), value));
  }
  for (const T& value : x) members.push_back(std::lower_bound(distinct.begin(), distinct.end(), value) - distinct.begin());
  const auto y = run(call_of("Unique", {tensor<T>({static_cast<int64_t>(x.size())}, x)}, {}, 4));
  ASSERT_EQ(y.size(), 4u);
  EXPECT_EQ(values<T>(*y[0]), distinct);
  EXPECT_EQ(values<int64_t>(*y[1]), firsts);
  EXPECT_EQ(values<int64_t>(*y[2]), members);
  EXPECT_EQ(values<int64_t>(*y[3]), counts);
}

TEST(Unique, SortsManyElementsOfEveryWidth) {
  const auto numbers = [](auto zero, double step) {
    std::vector<decltype(zero)> x;
    for (int i = 0; i < 700; ++i) x.push_back(static_cast<decltype(zero)>(step * static_cast<double>(i * 7919 % 311 - 150)));
    return x;
  };
  expect_distinct(numbers(float(), 0.37));
  expect_distinct(numbers(double(), 1e9));
  expect_distinct(numbers(int64_t(), 1e15));
  expect_distinct(numbers(int16_t(), 100));
  std::vector<uint8_t> bytes;
  for (int i = 0; i < 700; ++i) bytes.push_back(static_cast<uint8_t>(i * 7 % 200));
  expect_distinct(bytes);
  std::vector<float> special(100, std::numeric_limits<float>::quiet_NaN());
  special[7] = -0.0f, special[3] = 0, special[90] = -1, special[91] = std::numeric_limits<float>::infinity();
  const auto y = run(call_of("Unique", {tensor<float>({100}, special)}, {}, 4));
  EXPECT_EQ(values<int64_t>(*y.at(1)), (std::vector<int64_t>{90, 3, 91, 0}));
  EXPECT_EQ(values<int64_t>(*y.at(3)), (std::vector<int64_t>{1, 2, 1, 96}));
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
