// Sum, Mean, Max and Min of any number of inputs: the same numbers as a plain loop from the left, however many there are.
#include <algorithm>
#include <cmath>

#include "base/half.h"
#include "operators/pointwise_support.h"

namespace heddle::testing {
namespace {

// Counts around the number of inputs that one program takes, and far beyond what any could.
const std::vector<size_t> counts = {1, 2, 63, 64, 65, 126, 127, 128, 129, 1000, 20'000};

template <class T>
std::vector<std::vector<T>> material(size_t count, size_t elements) {
  std::vector<std::vector<T>> inputs(count);
  uint32_t state = 7;
  for (std::vector<T>& input : inputs)
    for (size_t i = 0; i < elements; ++i) {
      state = state * 1664525u + 1013904223u;
      input.push_back(static_cast<T>(static_cast<int32_t>(state >> 8) - (1 << 23)) / static_cast<T>(std::is_integral_v<T> ? 1 : 1 << 20));
    }
  return inputs;
}

template <class T>
T fold(const std::string& type, const std::vector<std::vector<T>>& inputs, size_t i) {
  T value = inputs[0][i];
  for (size_t k = 1; k < inputs.size(); ++k) {
    const T next = inputs[k][i];
    value = type == "Max" ? std::max(value, next) : type == "Min" ? std::min(value, next) : static_cast<T>(value + next);
  }
  return type == "Mean" ? static_cast<T>(value / static_cast<T>(inputs.size())) : value;
}

template <class T>
void expect_folds(const std::string& type, size_t count, size_t elements) {
  const auto inputs = material<T>(count, elements);
  std::vector<Tensor> tensors;
  for (const std::vector<T>& input : inputs) tensors.push_back(tensor<T>({static_cast<int64_t>(elements)}, input));
  OperatorCall call = call_of(type, tensors);
  for (const uint64_t split : {0, 5}) {
    call.split_seed = split;
    const auto y = run(call);
    ASSERT_EQ(y.size(), 1u) << type << " of " << count;
    const std::vector<T> actual = values<T>(*y[0]);
    for (size_t i = 0; i < elements; ++i) ASSERT_EQ(actual[i], fold(type, inputs, i)) << type << " of " << count << ", element " << i;
  }
}

TEST(Fold, EqualsAPlainLoopForAnyNumberOfInputs) {
  for (const size_t count : counts)
    for (const char* type : {"Sum", "Mean", "Max", "Min"}) {
      expect_folds<float>(type, count, count > 1000 ? 5 : 67);
      expect_folds<double>(type, count, 3);
    }
  for (const size_t count : {size_t{65}, size_t{1000}})
    for (const char* type : {"Max", "Min"}) {
      expect_folds<int8_t>(type, count, 17);
      expect_folds<uint32_t>(type, count, 17);
      expect_folds<int64_t>(type, count, 17);
    }
}

// The inputs have several blocks and tiles.
TEST(Fold, OfLongInputs) {
  expect_folds<float>("Sum", 70, 5000);
  expect_folds<float>("Max", 2000, 5000);
}

// Half floats are rounded once, at the end, as they are with a few inputs: 2048 + 1 + 1 ... stays 2048 if every step is rounded.
TEST(Fold, RoundsHalfFloatsOnceAtTheEnd) {
  constexpr uint16_t f16_one = 0x3C00, f16_2048 = 0x6800, f16_2248 = 0x6864;
  std::vector<Tensor> inputs = {halves(DType::f16, {1}, {f16_2048})};
  for (int i = 0; i < 200; ++i) inputs.push_back(halves(DType::f16, {1}, {f16_one}));
  EXPECT_EQ(values<uint16_t>(*run1("Sum", inputs)), std::vector<uint16_t>{f16_2248});
}

TEST(Fold, Broadcasts) {
  std::vector<Tensor> inputs = {tensor<float>({2, 3}, {0, 1, 2, 3, 4, 5})};
  for (int i = 0; i < 50; ++i) {
    inputs.push_back(tensor<float>({3}, {1, 10, 100}));
    inputs.push_back(tensor<float>({2, 1}, {0, 1000}));
    inputs.push_back(tensor<float>({}, {2}));
  }
  const Tensor y = run1("Sum", inputs);
  EXPECT_EQ(y->shape, (Shape{2, 3}));
  EXPECT_EQ(values<float>(*y), (std::vector<float>{150, 601, 5102, 50153, 50604, 55105}));
}

TEST(Fold, OfNothing) {
  EXPECT_EQ(run1("Sum", std::vector<Tensor>(100, tensor<float>({0, 2}, {})))->shape, (Shape{0, 2}));
}

}  // namespace
}  // namespace heddle::testing
