// ScatterElements and ScatterND: reductions, duplicates, splits and out-of-range indices; and the operators that write variables.
#include <gtest/gtest.h>

#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

Tensor indices(const Shape& shape, const std::vector<int64_t>& v) {
  return tensor<int64_t>(shape, v);
}

TEST(ScatterElements, CombinesDuplicatesInIndexOrder) {
  const auto scatter = [](const std::string& reduction) {
    return values<int32_t>(*run1("ScatterElements",
                                 {tensor<int32_t>({3}, {10, 20, 30}), indices({4}, {1, -2, 1, 0}), tensor<int32_t>({4}, {3, 5, 4, -7})},
                                 {{"reduction", reduction}}));
  };
  EXPECT_EQ(scatter("none"), (std::vector<int32_t>{-7, 4, 30}));
  EXPECT_EQ(scatter("add"), (std::vector<int32_t>{3, 32, 30}));
  EXPECT_EQ(scatter("mul"), (std::vector<int32_t>{-70, 1200, 30}));
  EXPECT_EQ(scatter("max"), (std::vector<int32_t>{10, 20, 30}));
  EXPECT_EQ(scatter("min"), (std::vector<int32_t>{-7, 3, 30}));
}

TEST(ScatterElements, IsTheSameForEverySplit) {
  const Shape shape{64, 700};
  std::vector<float> data(static_cast<size_t>(shape.element_count())), updates(data.size());
  std::vector<int64_t> where(data.size());
  for (size_t i = 0; i < data.size(); ++i) {
    data[i] = static_cast<float>(i % 101) * 0.37f;
    updates[i] = 1.0f / static_cast<float>(1 + i % 977);
    where[i] = static_cast<int64_t>(i * 7919 % 13);  // many duplicates
  }
  OperatorCall call = call_of("ScatterElements", {tensor<float>(shape, data), indices(shape, where), tensor<float>(shape, updates)},
                              {{"axis", int64_t{1}}, {"reduction", std::string("add")}});
  const auto whole = run(call);
  ASSERT_EQ(whole.size(), 1u);
  for (size_t r = 0; r < 64; ++r)
    for (size_t c = 0; c < 700; ++c) data[r * 700 + static_cast<size_t>(where[r * 700 + c])] += updates[r * 700 + c];
  EXPECT_EQ(values<float>(*whole[0]), data);
  for (uint64_t seed : {1, 2, 3}) {
    call.split_seed = seed;
    EXPECT_EQ(values<float>(*run(call).at(0)), data);
  }
}

// Indices may have smaller extents than data beside the axis; parts of the output are ranges of the second dimension.
TEST(ScatterElements, AlongTheFirstAxisIsTheSameForEverySplit) {
  const Shape shape{40, 300, 7}, picked{50, 290, 6};
  std::vector<float> data(static_cast<size_t>(shape.element_count())), updates(static_cast<size_t>(picked.element_count()));
  std::vector<int32_t> where(updates.size());
  for (size_t i = 0; i < data.size(); ++i) data[i] = static_cast<float>(i % 101) * 0.37f;
  for (size_t i = 0; i < updates.size(); ++i) {
    updates[i] = 1.0f / static_cast<float>(1 + i % 977);
    where[i] = static_cast<int32_t>(i * 7919 % 80) - 40;  // from the end, too, with duplicates
  }
  OperatorCall call =
      call_of("ScatterElements", {tensor<float>(shape, data), tensor<int32_t>(picked, where), tensor<float>(picked, updates)},
              {{"axis", int64_t{0}}, {"reduction", std::string("add")}});
  const auto whole = values<float>(*run(call).at(0));
  for (size_t i = 0; i < updates.size(); ++i) {
    const size_t row = static_cast<size_t>(where[i] < 0 ? where[i] + 40 : where[i]);
    data[row * 2100 + i / 6 % 290 * 7 + i % 6] += updates[i];
  }
  EXPECT_EQ(whole, data);
  for (uint64_t seed : {1, 2, 3}) {
    call.split_seed = seed;
    EXPECT_EQ(values<float>(*run(call).at(0)), data);
  }
}

TEST(ScatterND, IsTheSameForEverySplitOfLongSlices) {
  const Shape shape{8, 4096};
  std::vector<double> data(static_cast<size_t>(shape.element_count()), 1), updates(3 * 4096);
  for (size_t i = 0; i < updates.size(); ++i) updates[i] = 1e-3 * static_cast<double>(i);
  OperatorCall call = call_of("ScatterND", {tensor<double>(shape, data), indices({3, 1}, {2, -6, 7}), tensor<double>({3, 4096}, updates)},
                              {{"reduction", std::string("add")}});
  for (uint64_t seed : {0, 4}) {
    call.split_seed = seed;
    const auto v = values<double>(*run(call).at(0));
    for (size_t c = 0; c < 4096; ++c) {
      ASSERT_EQ(v[2 * 4096 + c], 1 + updates[c] + updates[4096 + c]);
      ASSERT_EQ(v[7 * 4096 + c], 1 + updates[2 * 4096 + c]);
      ASSERT_EQ(v[c], 1);
    }
  }
}

TEST(Scatter, NamesTheIndexThatIsOutside) {
  const Tensor data = tensor<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_NE(error_of(call_of("ScatterElements", {data, indices({1, 1}, {2}), tensor<float>({1, 1}, {0})})).find("index 2"),
            std::string::npos);
  EXPECT_NE(error_of(call_of("ScatterND", {data, indices({1, 2}, {0, -3}), tensor<float>({1}, {0})})).find("index -3"), std::string::npos);
  EXPECT_NE(error_of(call_of("ScatterND", {data, indices({1, 2}, {0, 0}), tensor<float>({2}, {0, 0})})).find("expected [1]"),
            std::string::npos);
  EXPECT_NE(
      error_of(call_of("ScatterElements", {data, indices({1, 1}, {0}), tensor<float>({1, 1}, {0})}, {{"reduction", std::string("mean")}}))
          .find("mean"),
      std::string::npos);
}

TEST(Update, WritesTheNextVersionOfAVariable) {
  const auto heddle = [](const std::string& type, std::vector<Tensor> inputs) {
    OperatorCall call = call_of(type, std::move(inputs));
    call.domain = "heddle";
    return run(call).at(0);
  };
  const Tensor w = tensor<float>({2}, {1, 2}), g = tensor<float>({2}, {10, -10});
  EXPECT_EQ(values<float>(*heddle("SgdUpdate", {w, g, tensor<float>({}, {0.5f})})), (std::vector<float>{-4, 7}));
  EXPECT_EQ(values<float>(*heddle("Assign", {w, g})), (std::vector<float>{10, -10}));
  EXPECT_EQ(values<float>(*heddle("AccumulateAdd", {w, g})), (std::vector<float>{11, -8}));
  EXPECT_EQ(values<int64_t>(*heddle("StepIncrement", {tensor<int64_t>({}, {41})})), std::vector<int64_t>{42});
  OperatorCall wrong = call_of("Assign", {w, tensor<float>({3}, {1, 2, 3})});
  wrong.domain = "heddle";
  EXPECT_NE(error_of(wrong).find("[3]"), std::string::npos);
}

}  // namespace
}  // namespace heddle::testing
