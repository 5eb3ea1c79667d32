// Positions beyond 2^31 elements in operators that pick or write by indices, and in outputs that copy no input (index_test.cc has the
// others).
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "cuda/sparse.h"
#include "generate/move/fill_launches.h"
#include "generate/move/pick_launches.h"
#include "generate/move/scatter_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// Index tuples hold more numbers than the data and the output have elements: their positions exceed 2^32.
TEST(Index, TuplesOfGatherND) {
  GatherNDLaunches gather;
  const int64_t picks = 2 * beyond / 4;
  const auto indices = sparse_tensor(DType::i32, Shape{picks, 4}), y = sparse_tensor(DType::u8, Shape{picks});
  const Tensor x = random_tensor(DType::u8, Shape{2, 2, 2, 2}, 0, 1, 1);
  elements_of<uint8_t>(*x)[0b1010] = 9;
  if (indices) elements_of<int32_t>(*indices)[picks * 4 - 4] = elements_of<int32_t>(*indices)[picks * 4 - 2] = 1;
  run_last(gather, {x, indices}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[picks - 1], 9);
}

TEST(Index, LinesOfScatterElements) {
  ScatterElementsLaunches scatter;
  scatter.axis = 1;
  const int64_t rows = beyond / 64;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 64}), y = sparse_tensor(DType::u8, Shape{rows, 64});
  const auto indices = sparse_tensor(DType::i32, Shape{rows, 1}), updates = sparse_tensor(DType::u8, Shape{rows, 1});
  if (x) elements_of<uint8_t>(*x)[rows * 64 - 2] = 7;
  if (indices) elements_of<int32_t>(*indices)[rows - 1] = -1;
  if (updates) elements_of<uint8_t>(*updates)[rows - 1] = 5;
  run_last(scatter, {x, indices, updates}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 64 - 1], 5);
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 64 - 2], 7);
}

// Updates are sorted by their target, and updates of the same target are added in their order.
TEST(Index, UpdatesOfScatterElements) {
  ScatterElementsLaunches scatter;
  scatter.reduction = operators::ScatterReduction::add;
  const auto x = sparse_tensor(DType::u8, Shape{beyond}), y = sparse_tensor(DType::u8, Shape{beyond});
  const Tensor indices = random_tensor(DType::i64, Shape{40}, 0, 0, 1), updates = random_tensor(DType::u8, Shape{40}, 0, 0, 1);
  for (const int64_t i : {3, 39}) elements_of<int64_t>(*indices)[i] = beyond - 1;
  for (const int64_t i : {3, 39}) elements_of<uint8_t>(*updates)[i] = 4;
  if (x) elements_of<uint8_t>(*x)[beyond - 1] = 1;
  run_last(scatter, {x, indices, updates}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[beyond - 1], 9);
}

TEST(Index, SlicesOfScatterND) {
  ScatterNDLaunches scatter;
  const int64_t rows = beyond / 64;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 64}), y = sparse_tensor(DType::u8, Shape{rows, 64});
  const Tensor indices = integers({rows - 1, rows - 2}), updates = random_tensor(DType::u8, Shape{2, 64}, 6, 6, 1);
  if (x) elements_of<uint8_t>(*x)[(rows - 2) * 64 - 1] = 7;
  run_last(scatter, {x, Blob::copy_of(DType::i64, Shape{2, 1}, indices->data), updates}, {y});
  if (IsSkipped()) return;
  for (int64_t i = 1; i <= 128; ++i) EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 64 - i], 6) << i;
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 64 - 129], 7);
}

TEST(Index, Constants) {
  ConstantLaunches constant;
  constant.value = 0x5a;
  const auto y = sparse_tensor(DType::u8, Shape{beyond});
  run_last(constant, {integers({beyond})}, {y});
  if (IsSkipped()) return;
  for (int64_t i = 1; i <= 4096; ++i) ASSERT_EQ(elements_of<uint8_t>(*y)[beyond - i], 0x5a) << i;
}

TEST(Index, Diagonals) {
  EyeLaunches eye;
  const int64_t rows = beyond / 4096;
  eye.k = 4095 - (rows - 1);
  const auto y = sparse_tensor(DType::u8, Shape{rows, 4096});
  run_last(eye, {y}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 4096 - 1], 1);
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 4096 - 2], 0);
}

TEST(Index, Ranges) {
  RangeLaunches range;
  const auto y = sparse_tensor(DType::i64, Shape{beyond});
  const auto number = [](int64_t n) { return Blob::copy_of(DType::i64, Shape{}, &n); };
  run_last(range, {number(3), number(3 + 2 * beyond), number(2)}, {y});
  if (IsSkipped()) return;
  for (int64_t i = 1; i <= 300; ++i) EXPECT_EQ(elements_of<int64_t>(*y)[beyond - i], 3 + 2 * (beyond - i)) << i;
}

}  // namespace
}  // namespace heddle::cuda::grid_test
