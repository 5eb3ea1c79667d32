// Generated kernels that pick and scatter elements by index, on the emulated grid, compared with the host's operators: the same bytes.
#include <gtest/gtest.h>

#include <algorithm>

#include "generate/move/pick_launches.h"
#include "generate/move/scatter_launches.h"
#include "move_run.h"

namespace heddle::cuda::grid_test {
namespace {

using Cases = std::vector<MoveCase>;
using operators::ScatterReduction;

// Returns indices in [-bound, bound).
Tensor indices_of(DType dtype, const Shape& shape, int64_t bound, uint64_t seed) {
  return random_tensor(dtype, shape, static_cast<double>(-bound), static_cast<double>(bound), seed);
}

// ---------------------------------------------------------------- picks

MoveCase gather(const Tensor& x, const Tensor& indices, int64_t axis, bool varies = false) {
  auto launches = std::make_unique<GatherLaunches>();
  launches->axis = axis;
  MoveCase one = move_case(std::move(launches), "Gather", {x, indices}, {{"axis", axis}});
  one.varies = varies;
  return one;
}

TEST(IndexingSource, GatherOfRowsOfAllWidths) {
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const DType index : {DType::i32, DType::i64}) {
      for (const bool varies : {false, true}) {
        cases.push_back(gather(any_bytes(dtype, Shape{9, 32}, 1), indices_of(index, Shape{5}, 9, 2), 0, varies));
        cases.push_back(gather(any_bytes(dtype, Shape{4, 7, 3}, 3), indices_of(index, Shape{2, 3}, 7, 4), 1, varies));
        cases.push_back(gather(any_bytes(dtype, Shape{6, 11}, 5), indices_of(index, Shape{}, 11, 6), -1, varies));
      }
      cases.push_back(gather(any_bytes(dtype, Shape{1}, 7), indices_of(index, Shape{1, 1, 40}, 1, 8), 0));
      cases.push_back(gather(any_bytes(dtype, Shape{3, 4}, 9), indices_of(index, Shape{0}, 3, 10), 0));
      cases.push_back(gather(any_bytes(dtype, Shape{3, 0}, 9), indices_of(index, Shape{2}, 3, 10), 0));
      cases.push_back(gather(any_bytes(dtype, Shape{2, 3, 2, 3, 2, 5, 2, 3}, 11), indices_of(index, Shape{4}, 5, 12), 5));
      cases.push_back(gather(any_bytes(dtype, Shape{50, 700}, 13), indices_of(index, Shape{3}, 50, 14), 0));
    }
  run_moves(std::move(cases));
}

TEST(IndexingSource, GatherElementsAlongEachAxis) {
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const DType index : {DType::i32, DType::i64}) {
      for (const bool varies : {false, true})
        for (int64_t axis = -3; axis < 3; ++axis) {
          auto launches = std::make_unique<GatherElementsLaunches>();
          launches->axis = axis;
          const int at = static_cast<int>(axis < 0 ? axis + 3 : axis);
          Shape shape{4, 5, 6}, picked{3, 4, 5};
          picked[at] = 9;
          cases.push_back(move_case(std::move(launches), "GatherElements",
                                    {any_bytes(dtype, shape, 1), indices_of(index, picked, shape[at], 2)}, {{"axis", axis}}));
          cases.back().varies = varies;
        }
      for (const Shape& shape : {Shape{1}, Shape{0}, Shape{300}, Shape{2, 1, 2, 3, 2, 1, 2, 3}})
        cases.push_back(move_case(std::make_unique<GatherElementsLaunches>(), "GatherElements",
                                  {any_bytes(dtype, shape, 3), indices_of(index, shape, std::max<int64_t>(shape[0], 1), 4)}));
    }
  run_moves(std::move(cases));
}

// Returns tuples that index the first `depth` dimensions after `batch` of data.
Tensor tuples(const Shape& data, int64_t batch, int64_t depth, const Shape& shape, uint64_t seed) {
  Numbers numbers = conformance::zeros(DType::i64, shape);
  std::mt19937_64 dice(seed);
  for (size_t i = 0; i < numbers.values.size(); ++i) {
    const int64_t bound = data[static_cast<int>(batch + static_cast<int64_t>(i) % depth)];
    numbers.values[i] = static_cast<Number>(static_cast<int64_t>(dice() % static_cast<uint64_t>(2 * bound)) - bound);
  }
  return conformance::blob_of(numbers);
}

TEST(IndexingSource, GatherNDWithBatches) {
  struct {
    Shape data;
    int64_t batch, depth;
    Shape indices;
  } const what[] = {{Shape{5, 6}, 0, 2, Shape{7, 2}},
                    {Shape{5, 32}, 0, 1, Shape{3, 2, 1}},
                    {Shape{3, 4, 5, 6}, 1, 2, Shape{3, 4, 2}},
                    {Shape{2, 3, 4}, 2, 1, Shape{2, 3, 1}},
                    {Shape{4}, 0, 1, Shape{1}},
                    {Shape{2, 3}, 0, 1, Shape{0, 1}},
                    {Shape{2, 3, 2, 3, 2, 3, 2, 3}, 0, 8, Shape{50, 8}}};
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const auto& w : what)
      for (const bool varies : {false, true}) {
        auto launches = std::make_unique<GatherNDLaunches>();
        launches->batch = w.batch;
        cases.push_back(move_case(std::move(launches), "GatherND",
                                  {any_bytes(dtype, w.data, 1), tuples(w.data, w.batch, w.depth, w.indices, 2)},
                                  {{"batch_dims", w.batch}}));
        cases.back().varies = varies;
      }
  run_moves(std::move(cases));
}

TEST(IndexingSource, SequencesInReverse) {
  Cases cases;
  for (const DType dtype : width_kinds)
    for (const bool time_first : {true, false})
      for (const Shape& shape : {Shape{6, 5}, Shape{4, 3, 16}, Shape{3, 7, 2, 3}, Shape{1, 1}, Shape{2, 3, 0}}) {
        auto launches = std::make_unique<ReverseLaunches>();
        launches->time_first = time_first;
        const int64_t times = shape[time_first ? 0 : 1], batches = shape[time_first ? 1 : 0];
        cases.push_back(
            move_case(std::move(launches), "ReverseSequence",
                      {any_bytes(dtype, shape, 1), random_tensor(DType::i64, Shape{batches}, 0, static_cast<double>(times + 1), 2)},
                      {{"time_axis", int64_t{!time_first}}, {"batch_axis", int64_t{time_first}}}));
        cases.back().varies = shape.rank() == 4;
      }
  run_moves(std::move(cases));
}

TEST(IndexingSource, OneHotOfIndicesOfAllKinds) {
  Cases cases;
  for (const DType index : number_kinds)
    for (int64_t axis = -3; axis < 3; ++axis) {
      auto launches = std::make_unique<OneHotLaunches>();
      launches->axis = axis;
      const bool is_signed = index != DType::u8 && index != DType::u16 && index != DType::u32 && index != DType::u64;
      const DType dtype = width_kinds[static_cast<size_t>(axis + 3) % std::size(width_kinds)];
      cases.push_back(move_case(
          std::move(launches), "OneHot",
          {random_tensor(index, Shape{5, 9}, is_signed ? -9 : 0, 9, 1), tensor_of(DType::i64, Shape{}, {7}), any_bytes(dtype, Shape{2}, 2)},
          {{"axis", axis}}));
      cases.back().varies = axis == 1;
    }
  const Tensor odd = tensor_of(DType::f32, Shape{6}, {std::nanl(""), HUGE_VALL, -HUGE_VALL, -0.5L, -1.5L, 2.5L});
  cases.push_back(move_case(std::make_unique<OneHotLaunches>(), "OneHot",
                            {odd, tensor_of(DType::f32, Shape{1}, {3}), any_bytes(DType::f32, Shape{2}, 3)}));
  cases.push_back(move_case(std::make_unique<OneHotLaunches>(), "OneHot",
                            {integers({1, 2}), tensor_of(DType::i32, Shape{}, {0}), any_bytes(DType::f32, Shape{2}, 3)}));
  run_moves(std::move(cases));
}

// Indices that the host refuses give zeros.
TEST(IndexingSource, WhatIsNotThereIsZero) {
  Cases cases;
  const Tensor x = any_bytes(DType::f32, Shape{3, 4}, 1);
  const auto row = [&](int64_t i) {
    Elements all(4, 0);
    for (size_t c = 0; i >= 0 && c < 4; ++c) all[c] = conformance::numbers_of(*x).values[static_cast<size_t>(i) * 4 + c];
    return all;
  };
  const auto rows = [&](const std::vector<int64_t>& which) {
    Elements all;
    for (const int64_t i : which)
      for (const Number n : row(i)) all.push_back(n);
    return tensor_of(DType::f32, Shape{static_cast<int64_t>(which.size()), 4}, all);
  };
  cases.push_back(gather(x, integers({2, 3, -3, -4, INT64_MAX, INT64_MIN}), 0));
  cases.back().expected = {rows({2, -1, 0, -1, -1, -1})};
  cases.push_back(move_case(std::make_unique<GatherNDLaunches>(), "GatherND", {x, tensor_of(DType::i64, Shape{3, 1}, {5, 1, -9})}));
  cases.back().expected = {rows({-1, 1, -1})};
  cases.push_back(move_case(std::make_unique<GatherElementsLaunches>(), "GatherElements",
                            {x, tensor_of(DType::i32, Shape{2, 4}, {3, 3, 3, 3, 1, 1, 1, 1})}));
  cases.back().expected = {rows({-1, 1})};
  auto reverse = std::make_unique<ReverseLaunches>();
  reverse->time_first = false;
  cases.push_back(move_case(std::move(reverse), "ReverseSequence", {x, integers({5, 0, -1})}));
  cases.back().expected = {rows({-1, 1, -1})};
  cases.push_back(gather(any_bytes(DType::f32, Shape{0, 4}, 1), integers({0, -1}), 0));
  cases.back().expected = {rows({-1, -1})};
  run_moves(std::move(cases));
}

// ---------------------------------------------------------------- scatters

const char* const reductions[] = {"none", "add", "mul", "max", "min"};

MoveCase scatter_elements(const Tensor& x, const Tensor& indices, const Tensor& updates, int64_t axis, int reduction) {
  auto launches = std::make_unique<ScatterElementsLaunches>();
  launches->axis = axis;
  launches->reduction = static_cast<ScatterReduction>(reduction);
  if (x->dtype == DType::boolean && reduction == 1) launches->reduction = ScatterReduction::max;
  if (x->dtype == DType::boolean && reduction == 2) launches->reduction = ScatterReduction::min;
  return move_case(std::move(launches), "ScatterElements", {x, indices, updates},
                   {{"axis", axis}, {"reduction", std::string(reductions[reduction])}});
}
MoveCase scatter_nd(const Tensor& x, const Tensor& indices, const Tensor& updates, int reduction) {
  auto launches = std::make_unique<ScatterNDLaunches>();
  launches->reduction = static_cast<ScatterReduction>(reduction);
  if (x->dtype == DType::boolean && reduction == 1) launches->reduction = ScatterReduction::max;
  if (x->dtype == DType::boolean && reduction == 2) launches->reduction = ScatterReduction::min;
  return move_case(std::move(launches), "ScatterND", {x, indices, updates}, {{"reduction", std::string(reductions[reduction])}});
}
// Returns numbers whose sums round, and depend on their order.
Tensor rounding(DType dtype, const Shape& shape, uint64_t seed) {
  if (dtype == DType::boolean || !conformance::is_floating(dtype)) return any_bytes(dtype, shape, seed);
  return random_tensor(dtype, shape, -2, 2, seed);
}

std::vector<DType> all_kinds() {
  std::vector<DType> kinds(std::begin(number_kinds), std::end(number_kinds));
  kinds.push_back(DType::boolean);
  return kinds;
}

TEST(IndexingSource, ScatterElementsInTheOrderOfUpdates) {
  for (const bool in_place : {false, true}) {
    Cases cases;
    for (const DType dtype : all_kinds())
      for (int reduction = 0; reduction < 5; ++reduction) {
        // By lines, with updates of the same element.
        cases.push_back(scatter_elements(rounding(dtype, Shape{5, 4}, 1), indices_of(DType::i64, Shape{20, 3}, 5, 2),
                                         rounding(dtype, Shape{20, 3}, 3), 0, reduction));
        // Sorted, with few elements and many updates.
        cases.push_back(scatter_elements(rounding(dtype, Shape{3, 7}, 4), indices_of(DType::i32, Shape{2, 50}, 7, 5),
                                         rounding(dtype, Shape{2, 50}, 6), -1, reduction));
        cases.back().varies = reduction == 1;
      }
    for (const int64_t count : {2048, 2049, 5000})  // sorted and merged
      for (const int reduction : {0, 1})
        cases.push_back(scatter_elements(rounding(DType::f32, Shape{900}, 7), indices_of(DType::i64, Shape{count}, 900, 8),
                                         rounding(DType::f32, Shape{count}, 9), 0, reduction));
    for (const bool varies : {false, true}) {
      if (varies == in_place) continue;
      cases.push_back(scatter_elements(rounding(DType::f32, Shape{40, 5000}, 10), indices_of(DType::i64, Shape{40, 4100}, 40, 11),
                                       rounding(DType::f32, Shape{40, 4100}, 12), 0, 1));
      cases.back().varies = varies;
      cases.push_back(scatter_elements(rounding(DType::f16, Shape{2, 3, 2, 3, 2, 3, 2, 3}, 13),
                                       indices_of(DType::i64, Shape{2, 3, 2, 3, 2, 60, 2, 3}, 3, 14),
                                       rounding(DType::f16, Shape{2, 3, 2, 3, 2, 60, 2, 3}, 15), 5, 2));
      cases.back().varies = varies;
    }
    cases.push_back(scatter_elements(rounding(DType::f32, Shape{4}, 16), integers({}), rounding(DType::f32, Shape{0}, 17), 0, 1));
    cases.push_back(scatter_elements(rounding(DType::f32, Shape{0, 3}, 16), indices_of(DType::i64, Shape{0, 3}, 3, 18),
                                     rounding(DType::f32, Shape{0, 3}, 17), 1, 1));
    run_moves(std::move(cases), in_place);
  }
}

TEST(IndexingSource, ScatterNDInTheOrderOfUpdates) {
  for (const bool in_place : {false, true}) {
    Cases cases;
    const auto add = [&](DType dtype, const Shape& data, int64_t depth, int64_t count, int reduction, bool varies = false) {
      Shape updates{count};
      for (int d = static_cast<int>(depth); d < data.rank(); ++d) updates.push_back(data[d]);
      cases.push_back(
          scatter_nd(rounding(dtype, data, 1), tuples(data, 0, depth, Shape{count, depth}, 2), rounding(dtype, updates, 3), reduction));
      cases.back().varies = varies;
    };
    for (const DType dtype : all_kinds())
      for (int reduction = 0; reduction < 5; ++reduction) {
        add(dtype, Shape{3, 4}, 2, 60, reduction);
        add(dtype, Shape{4, 9}, 1, 11, reduction, reduction == 1);
      }
    add(DType::f32, Shape{50, 40}, 2, 5000, 1);  // merged
    add(DType::f32, Shape{50, 40}, 2, 9000, 0, true);
    add(DType::f32, Shape{1, 3}, 1, 300, 1);  // all of them have the same target
    add(DType::f32, Shape{5, 3}, 1, 0, 1);
    add(DType::f32, Shape{1}, 1, 1, 2);
    add(DType::f16, Shape{2, 3, 2, 3, 2, 3, 2, 3}, 8, 700, 1);
    run_moves(std::move(cases), in_place);
  }
}

TEST(IndexingSource, ScattersOfNumbersThatAreNone) {
  Cases cases;
  const Number none = std::nanl("");
  for (const DType dtype : float_kinds)
    for (const int reduction : {3, 4}) {
      const Tensor x = tensor_of(dtype, Shape{5}, {1, none, 0.0L, -0.0L, 2}),
                   updates = tensor_of(dtype, Shape{6}, {none, 1, -0.0L, 0.0L, 2, none});
      cases.push_back(scatter_nd(x, tensor_of(DType::i64, Shape{6, 1}, {0, 1, 2, 3, 4, 4}), updates, reduction));
      cases.push_back(scatter_elements(x, integers({0, 1, 2, 3, 4, 4}), updates, 0, reduction));
    }
  run_moves(std::move(cases));
}

// Updates that the host refuses are left out.
TEST(IndexingSource, UpdatesOfWhatIsNotThereAreLeftOut) {
  Cases cases;
  const Tensor x = tensor_of(DType::f32, Shape{3}, {1, 2, 3});
  for (const bool sorted : {true, false}) {
    std::vector<int64_t> which = {3, 1, -4, 1, INT64_MIN};
    which.resize(sorted ? 100 : 5, INT64_MAX);
    Elements amounts(which.size(), 8);
    amounts[1] = 10;
    amounts[3] = 20;
    const Shape shape{static_cast<int64_t>(which.size())};
    cases.push_back(scatter_elements(x, integers(which), tensor_of(DType::f32, shape, amounts), 0, 1));
    cases.back().expected = {tensor_of(DType::f32, Shape{3}, {1, 32, 3})};
    cases.push_back(scatter_nd(x, Blob::copy_of(DType::i64, Shape{shape[0], 1}, which.data()), tensor_of(DType::f32, shape, amounts), 1));
    cases.back().expected = {tensor_of(DType::f32, Shape{3}, {1, 32, 3})};
    cases.back().varies = sorted;
  }
  run_moves(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
