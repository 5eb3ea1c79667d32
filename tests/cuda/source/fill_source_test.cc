// Generated kernels of ConstantOfShape, EyeLike and Range, on the emulated grid, compared with the host's operators: the same bytes.
#include <gtest/gtest.h>

#include "generate/move/fill_launches.h"
#include "move_run.h"

namespace heddle::cuda::grid_test {
namespace {

using Cases = std::vector<MoveCase>;

TEST(FillSource, ConstantsOfAllWidths) {
  Cases cases;
  for (const DType dtype : number_kinds)
    for (const std::vector<int64_t>& shape : {std::vector<int64_t>{}, {1}, {3, 33}, {100, 16}, {0, 4}, {257}})
      for (const bool varies : {false, true}) {
        auto launches = std::make_unique<ConstantLaunches>();
        const Tensor value = any_bytes(dtype, Shape{1}, 7);
        std::memcpy(&launches->value, value->data, static_cast<size_t>(value->bytes));
        cases.push_back(move_case(std::move(launches), "ConstantOfShape", {integers(shape)}, {{"value", value}}));
        cases.back().varies = varies;
      }
  run_moves(std::move(cases));
}

TEST(FillSource, DiagonalsOfOnes) {
  Cases cases;
  for (const auto& [number, dtype] : conformance::onnx_dtypes())
    for (const Shape& shape : {Shape{4, 4}, Shape{3, 50}, Shape{50, 3}, Shape{1, 1}, Shape{0, 3}})
      for (const int64_t k : {0, 2, -1, -60, 60}) {
        auto launches = std::make_unique<EyeLaunches>();
        launches->k = k;
        cases.push_back(move_case(std::move(launches), "EyeLike", {any_bytes(DType::f32, shape, 1)}, {{"k", k}, {"dtype", number}}));
        cases.back().varies = k == 2;
      }
  run_moves(std::move(cases));
}

TEST(FillSource, RangesHaveTheHostsBits) {
  Cases cases;
  for (const DType dtype : {DType::f32, DType::f64, DType::i16, DType::i32, DType::i64})
    for (const auto& [start, limit, delta] :
         {std::tuple(0.0L, 300.0L, 1.0L), {5.0L, -400.0L, -3.0L}, {1.0L, 1.0L, 1.0L}, {-7.0L, 90.0L, 2.0L}, {0.1L, 40.3L, 0.3L}}) {
      if (!conformance::is_floating(dtype) && delta != std::floor(delta)) continue;
      cases.push_back(
          move_case(std::make_unique<RangeLaunches>(), "Range",
                    {tensor_of(dtype, Shape{}, {start}), tensor_of(dtype, Shape{}, {limit}), tensor_of(dtype, Shape{}, {delta})}));
      cases.back().varies = start == 5;
    }
  run_moves(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
