// Positions beyond 2^31 elements: the last blocks of each kernel, on sparse memory.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "cuda/sparse.h"
#include "generate/image/grid_sample_launches.h"
#include "generate/image/resize_launches.h"
#include "generate/image/roi_align_launches.h"
#include "generate/move/box_launches.h"
#include "generate/move/parts_launches.h"
#include "generate/move/pick_launches.h"
#include "generate/operators/channel_launches.h"
#include "generate/operators/einsum_launches.h"
#include "generate/operators/loss_launches.h"
#include "generate/operators/random_launches.h"
#include "generate/operators/update_launches.h"
#include "generate/reduce/reduce_launches.h"
#include "generate/rows/row_launches.h"
#include "generate/select/compact_launches.h"
#include "generate/select/scan_launches.h"
#include "generate/select/topk_launches.h"
#include "heddle/op/philox.h"

namespace heddle::cuda::grid_test {
namespace {

// f16
constexpr uint16_t one = 0x3c00, two = 0x4000, half = 0x3800;

TEST(Index, RowsOfReductions) {
  AxisReduction sum;
  sum.axis = 1;
  const int64_t rows = beyond / 64;
  const auto x = sparse_tensor(DType::f16, Shape{rows, 64}), y = sparse_tensor(DType::f16, Shape{rows});
  for (int64_t i = 0; x && i < 64; ++i) elements_of<uint16_t>(*x)[(rows - 1) * 64 + i] = i % 32 == 0 ? one : uint16_t{0};
  run_last(sum, {x}, {y});
  ASSERT_FALSE(HasFailure());
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows - 1], two);
}

TEST(Index, ColumnsOfReductions) {
  AxisReduction most;
  most.passes.last.shape.kind = ReduceKind::max;
  const int64_t columns = beyond / 4096;
  const auto x = sparse_tensor(DType::u8, Shape{4096, columns}), y = sparse_tensor(DType::u8, Shape{columns});
  if (x) elements_of<uint8_t>(*x)[4095 * columns + columns - 1] = 77;
  if (x) elements_of<uint8_t>(*x)[4094 * columns + columns - 2] = 78;
  run_last(most, {x}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[columns - 1], 77);
  EXPECT_EQ(elements_of<uint8_t>(*y)[columns - 2], 78);
}

// The results of the other parts are the neutral element.
TEST(Index, PositionsInOneRow) {
  AxisReduction most;
  most.passes.last.shape.kind = ReduceKind::arg_max;
  const auto x = sparse_tensor(DType::u8, Shape{beyond}), y = sparse_tensor(DType::i64, Shape{});
  if (x) elements_of<uint8_t>(*x)[beyond - 3] = 5;
  run_last(most, {x}, {y}, 1);
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<int64_t>(*y)[0], beyond - 3);
}

TEST(Index, HeldRows) {
  AxisLaunches softmax;
  const int64_t rows = beyond / 16;
  const auto x = sparse_tensor(DType::f16, Shape{rows, 16}), y = sparse_tensor(DType::f16, Shape{rows, 16});
  for (int64_t i = 2; x && i < 16; ++i) elements_of<uint16_t>(*x)[(rows - 1) * 16 + i] = 0xfc00;  // -inf
  run_last(softmax, {x}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows * 16 - 16], half);
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows * 16 - 15], half);
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows * 16 - 1], 0);
}

// The statistics of most of the row are unknown: its elements are no numbers, but they are written.
TEST(Index, ElementsOfLongRows) {
  AxisLaunches softmax;
  const auto x = sparse_tensor(DType::f16, Shape{1, beyond}), y = sparse_tensor(DType::f16, Shape{1, beyond});
  run_last(softmax, {x}, {y});
  if (IsSkipped()) return;
  for (int64_t i = 1; i <= 8; ++i) EXPECT_EQ(elements_of<uint16_t>(*y)[beyond - i] & 0x7fff, 0x7fff) << i;
}

TEST(Index, Scans) {
  const int64_t lines = beyond / 8;
  for (const bool apart : {false, true}) {
    ScanLaunches sums;
    const Shape shape = apart ? Shape{8, lines} : Shape{lines, 8};
    const auto x = sparse_tensor(DType::u8, shape), y = sparse_tensor(DType::u8, shape);
    const int64_t last = (apart ? 7 * lines : (lines - 1) * 8 + 7) + (apart ? lines - 1 : 0), step = apart ? lines : 1;
    for (int64_t i = 0; x && i < 8; ++i) elements_of<uint8_t>(*x)[last - i * step] = 1;
    run_last(sums, {x, integers({apart ? 0 : 1})}, {y});
    if (IsSkipped()) return;
    EXPECT_EQ(elements_of<uint8_t>(*y)[last], 8);
    EXPECT_EQ(elements_of<uint8_t>(*y)[last - 7 * step], 1);
  }
}

TEST(Index, TopK) {
  TopKLaunches first;
  const int64_t rows = beyond / 32;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 32}), values = sparse_tensor(DType::u8, Shape{rows, 2});
  const auto indices = sparse_tensor(DType::i64, Shape{rows, 2});
  if (x) elements_of<uint8_t>(*x)[(rows - 1) * 32 + 31] = 9;
  run_last(first, {x, integers({2})}, {values, indices});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*values)[(rows - 1) * 2], 9);
  EXPECT_EQ(elements_of<int64_t>(*indices)[(rows - 1) * 2], 31);
  EXPECT_EQ(elements_of<int64_t>(*indices)[(rows - 1) * 2 + 1], 0);
}

TEST(Index, Channels) {
  BatchLaunches batch;
  const int64_t spatial = beyond / 4;
  const auto x = sparse_tensor(DType::f16, Shape{1, 4, spatial}), y = sparse_tensor(DType::f16, Shape{1, 4, spatial});
  const auto parameter = [](double a) { return tensor_of(DType::f32, Shape{4}, {0, 0, 0, a}); };
  run_last(batch, {x, parameter(0.5), parameter(1), parameter(-2), parameter(1)}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint16_t>(*y)[4 * spatial - 1], two);
}

TEST(Index, SquaresOfTransposes) {
  TransposeLaunches transpose;
  transpose.order = {1, 0};
  const int64_t rows = 4096, columns = beyond / rows;
  const auto x = sparse_tensor(DType::u8, Shape{rows, columns}), y = sparse_tensor(DType::u8, Shape{columns, rows});
  if (x) elements_of<uint8_t>(*x)[rows * columns - 1] = 7;
  if (x) elements_of<uint8_t>(*x)[rows * columns - 1 - columns] = 8;
  run_last(transpose, {x}, {y}, 1);
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * columns - 1], 7);
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * columns - 2], 8);
}

TEST(Index, StepsOfSlices) {
  SliceLaunches slice;
  const auto x = sparse_tensor(DType::u8, Shape{beyond}), y = sparse_tensor(DType::u8, Shape{beyond / 3});
  if (x) elements_of<uint8_t>(*x)[beyond - 1 - (beyond / 3 - 1) * 3] = 9;
  run_last(slice, {x, integers({-1}), integers({beyond % 3 - 1 == -1 ? INT64_MIN : beyond % 3 - 1}), integers({0}), integers({-3})}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[beyond / 3 - 1], 9);
}

TEST(Index, PartsOfConcat) {
  PartsLaunches concat;
  const auto x = sparse_tensor(DType::u8, Shape{beyond - 33}), other = sparse_tensor(DType::u8, Shape{33}),
             y = sparse_tensor(DType::u8, Shape{beyond});
  if (other) elements_of<uint8_t>(*other)[32] = 5;
  run_last(concat, {x, other}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[beyond - 1], 5);
}

TEST(Index, RowsOfGather) {
  GatherLaunches gather;
  const int64_t rows = beyond / 48;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 48}), y = sparse_tensor(DType::u8, Shape{2, 48});
  if (x) elements_of<uint8_t>(*x)[rows * 48 - 1] = 6;
  run_last(gather, {x, integers({0, -1})}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[95], 6);
}

// Without classes no label names one.
TEST(Index, LabelsOfLosses) {
  LossLaunches losses;
  losses.reduction = LossReduction::none;
  const auto labels = sparse_tensor(DType::i32, Shape{beyond}), y = sparse_tensor(DType::f16, Shape{beyond});
  run_last(losses, {tensor_of(DType::f16, Shape{beyond, 0}, {}), labels}, {y});
  if (IsSkipped()) return;
  for (int64_t i = 1; i <= 300; ++i) EXPECT_EQ(elements_of<uint16_t>(*y)[beyond - i] & 0x7fff, 0x7fff) << i;
}

TEST(Index, PickedByResize) {
  ResizeLaunches nearest;
  const int64_t rows = beyond / 65536;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 32768}), y = sparse_tensor(DType::u8, Shape{rows, 65536});
  if (x) elements_of<uint8_t>(*x)[rows * 32768 - 1] = 77;
  run_last(nearest, {x, integers({}), integers({}), integers({rows, 65536})}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 65536 - 1], 77);
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 65536 - 3], 0);
}

// Tables are filled by the first launch, all of whose blocks are among its last.
TEST(Index, SummedByResize) {
  ResizeLaunches linear;
  linear.node.options.interpolation = operators::Interpolation::linear;
  const int64_t rows = beyond / 512;
  const auto x = sparse_tensor(DType::u8, Shape{rows, 256}), y = sparse_tensor(DType::u8, Shape{rows, 512});
  if (x) elements_of<uint8_t>(*x)[rows * 256 - 1] = 80;
  run_last(linear, {x, integers({}), integers({}), integers({rows, 512})}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 512 - 1], 80);
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 512 - 2], 60);
  EXPECT_EQ(elements_of<uint8_t>(*y)[rows * 512 - 3], 20);
}

TEST(Index, SamplesOfAGrid) {
  GridSampleLaunches linear;
  const int64_t channels = beyond / 64;
  const auto x = sparse_tensor(DType::f16, Shape{1, channels, 64}), y = sparse_tensor(DType::f16, Shape{1, channels, 64});
  if (x) elements_of<uint16_t>(*x)[channels * 64 - 1] = two;
  run_last(linear, {x, random_tensor(DType::f32, Shape{1, 64, 1}, 63.0 / 64, 63.0 / 64, 1)}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint16_t>(*y)[channels * 64 - 1], two);
  EXPECT_EQ(elements_of<uint16_t>(*y)[(channels - 1) * 64], two);
}

TEST(Index, AlignedRegions) {
  RoiAlignLaunches means;
  means.options.sampling_ratio = 1;
  const int64_t channels = beyond / 64;
  const auto x = sparse_tensor(DType::f16, Shape{2, channels, 8, 8}), y = sparse_tensor(DType::f16, Shape{1, channels, 8, 8});
  if (x) elements_of<uint16_t>(*x)[2 * channels * 64 - 1] = two;
  run_last(means, {x, tensor_of(DType::f16, Shape{1, 4}, {0, 0, 8, 8}), integers({1})}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint16_t>(*y)[channels * 64 - 1], two);
  EXPECT_EQ(elements_of<uint16_t>(*y)[channels * 64 - 2], 0);
}

TEST(Index, SumsOfProducts) {
  EinsumLaunches outer;
  outer.equation = "ij,kj->ik";
  const int64_t rows = beyond / 4;
  const auto x = sparse_tensor(DType::f16, Shape{rows, 2}), y = sparse_tensor(DType::f16, Shape{rows, 4});
  if (x) elements_of<uint16_t>(*x)[rows * 2 - 1] = two;
  run_last(outer, {x, tensor_of(DType::f16, Shape{4, 2}, {1, 1, 1, 1, 1, 1, 1, 0.5L})}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows * 4 - 1], one);
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows * 4 - 2], two);
  EXPECT_EQ(elements_of<uint16_t>(*y)[rows * 4 - 5], 0);
}

// Draws from the state that run_last() uses.
uint32_t word_at(int64_t element) {
  return plugin::Philox(heddle_run_state{}, 0).block(static_cast<uint64_t>(element / 4))[static_cast<size_t>(element % 4)];
}

TEST(Index, RandomNumbers) {
  NumbersLaunches uniform;
  uniform.numbers = {false, 0, 1, std::nan("")};
  const auto y = sparse_tensor(DType::f32, Shape{beyond + 1});
  run_last(uniform, {y}, {y});
  if (IsSkipped()) return;
  for (int64_t i = beyond - 5; i <= beyond; ++i) EXPECT_EQ(elements_of<float>(*y)[i], plugin::unit_float(word_at(i))) << i;
}

TEST(Index, Choices) {
  BernoulliLaunches bernoulli;
  const auto x = sparse_tensor(DType::f16, Shape{beyond + 1}), y = sparse_tensor(DType::u8, Shape{beyond + 1});
  for (int64_t i = beyond - 30; x && i <= beyond; ++i) elements_of<uint16_t>(*x)[i] = half;
  run_last(bernoulli, {x}, {y});
  if (IsSkipped()) return;
  for (int64_t i = beyond - 30; i <= beyond; ++i) EXPECT_EQ(elements_of<uint8_t>(*y)[i], word_at(i) >> 31 ? 0 : 1) << i;
}

TEST(Index, Dropout) {
  DropoutLaunches dropout;
  const auto x = sparse_tensor(DType::f16, Shape{beyond + 1}), y = sparse_tensor(DType::f16, Shape{beyond + 1}),
             mask = sparse_tensor(DType::boolean, Shape{beyond + 1});
  for (int64_t i = beyond - 30; x && i <= beyond; ++i) elements_of<uint16_t>(*x)[i] = one;
  run_last(dropout, {x, tensor_of(DType::f32, Shape{}, {0.5L}), tensor_of(DType::boolean, Shape{}, {1})}, {y, mask});
  if (IsSkipped()) return;
  for (int64_t i = beyond - 30; i <= beyond; ++i) {
    EXPECT_EQ(elements_of<uint8_t>(*mask)[i], word_at(i) >> 31) << i;
    EXPECT_EQ(elements_of<uint16_t>(*y)[i], word_at(i) >> 31 ? two : uint16_t{0}) << i;
  }
}

// The number of rows is such that the last blocks end with the last row.
TEST(Index, ClassesOfRows) {
  MultinomialLaunches multinomial;
  const int64_t rows = (int64_t{1} << 25) + (int64_t{1} << 17);
  const auto x = sparse_tensor(DType::f16, Shape{rows, 64}), y = sparse_tensor(DType::i32, Shape{rows, 1});
  for (int64_t c = 0; x && c < 64; ++c) elements_of<uint16_t>(*x)[(rows - 1) * 64 + c] = c == 37 ? one : uint16_t{0xfc00};  // -inf
  run_last(multinomial, {x}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<int32_t>(*y)[rows - 1], 37);
}

TEST(Index, Updates) {
  constexpr int64_t count = beyond + 16;
  for (const Update of : {Update::assign, Update::accumulate}) {
    UpdateLaunches update(of);
    const auto x = sparse_tensor(DType::u8, Shape{count}), value = sparse_tensor(DType::u8, Shape{count});
    if (x) elements_of<uint8_t>(*x)[count - 1] = 5;
    if (value) elements_of<uint8_t>(*value)[count - 1] = 3;
    if (value) elements_of<uint8_t>(*value)[count - 2] = 4;
    run_last(update, {x, value}, {x});
    if (IsSkipped()) return;
    EXPECT_EQ(elements_of<uint8_t>(*x)[count - 1], of == Update::assign ? 3 : 8);
    EXPECT_EQ(elements_of<uint8_t>(*x)[count - 2], 4);
  }
}

TEST(Index, RowsThatAreChosen) {
  CompressLaunches compress;
  compress.flat = false;
  compress.axis = 1;
  const int64_t before = beyond / 64;
  const auto x = sparse_tensor(DType::u8, Shape{before, 64}), y = sparse_tensor(DType::u8, Shape{before, 2});
  const Tensor condition = random_tensor(DType::boolean, Shape{64}, 0, 1, 1);
  for (const int64_t chosen : {5, 63}) elements_of<uint8_t>(*condition)[chosen] = 1;
  if (x) elements_of<uint8_t>(*x)[beyond - 1] = 7;
  if (x) elements_of<uint8_t>(*x)[beyond - 64 + 5] = 6;
  run_last(compress, {x, condition}, {y});
  if (IsSkipped()) return;
  EXPECT_EQ(elements_of<uint8_t>(*y)[2 * before - 1], 7);
  EXPECT_EQ(elements_of<uint8_t>(*y)[2 * before - 2], 6);
}

}  // namespace
}  // namespace heddle::cuda::grid_test
