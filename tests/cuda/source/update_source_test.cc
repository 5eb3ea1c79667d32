// Generated kernels of operators that write variables, on the emulated grid, compared with the host's operators: the same bytes, also if
// the next version shares the variable's memory.
#include <gtest/gtest.h>

#include "generate/operators/update_launches.h"
#include "move_run.h"

namespace heddle::cuda::grid_test {
namespace {

using Cases = std::vector<MoveCase>;

MoveCase update_case(Update of, const std::string& type, std::vector<Tensor> inputs) {
  MoveCase one = move_case(std::make_unique<UpdateLaunches>(of), type, std::move(inputs));
  one.call.domain = "heddle";
  return one;
}

const Shape update_shapes[] = {Shape{}, Shape{3}, Shape{0, 4}, Shape{17, 31}, Shape{9000}};

TEST(UpdateSource, Assign) {
  for (const bool shared : {false, true}) {
    Cases cases;
    for (const auto& [number, dtype] : conformance::onnx_dtypes())
      for (const Shape& shape : update_shapes) {
        cases.push_back(update_case(Update::assign, "Assign", {any_bytes(dtype, shape, 1), any_bytes(dtype, shape, 2)}));
        cases.back().varies = shape.rank() == 0;
      }
    run_moves(std::move(cases), shared);
  }
}

// Integers wrap.
TEST(UpdateSource, AccumulateAdd) {
  for (const bool shared : {false, true}) {
    Cases cases;
    for (const DType dtype : number_kinds)
      for (const Shape& shape : update_shapes) {
        const auto some = [&](uint64_t seed) {
          return conformance::is_floating(dtype) ? random_tensor(dtype, shape, -1000, 1000, seed) : any_bytes(dtype, shape, seed);
        };
        cases.push_back(update_case(Update::accumulate, "AccumulateAdd", {some(1), some(2)}));
        cases.back().varies = shape.rank() == 0;
      }
    run_moves(std::move(cases), shared);
  }
}

// The product and the difference round separately, as on the host.
TEST(UpdateSource, SgdUpdate) {
  for (const bool shared : {false, true}) {
    Cases cases;
    for (const DType dtype : float_kinds)
      for (const DType of_rate : float_kinds)
        for (const Shape& shape : update_shapes) {
          if (of_rate != DType::f64 && of_rate != dtype && shape.rank() != 2) continue;
          cases.push_back(update_case(
              Update::sgd, "SgdUpdate",
              {random_tensor(dtype, shape, -2, 2, 1), random_tensor(dtype, shape, -9, 9, 2), tensor_of(of_rate, Shape{}, {0.017L})}));
          cases.back().varies = shape.rank() == 0;
        }
    run_moves(std::move(cases), shared);
  }
}

TEST(UpdateSource, StepIncrement) {
  for (const bool shared : {false, true}) {
    Cases cases;
    for (const int64_t step : {int64_t{0}, int64_t{-1}, int64_t{1} << 40, INT64_MAX})
      for (const Shape& shape : {Shape{}, Shape{1}})
        cases.push_back(update_case(Update::increment, "StepIncrement", {Blob::copy_of(DType::i64, shape, &step)}));
    run_moves(std::move(cases), shared);
  }
}

}  // namespace
}  // namespace heddle::cuda::grid_test
