// Generated kernels that look for elements or sum them up to each one, on the emulated grid: ArgMax, ArgMin and TopK, exact with all their
// ties, and CumSum.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "cuda/lines.h"
#include "generate/reduce/reduce_launches.h"
#include "generate/select/scan_launches.h"
#include "generate/select/topk_launches.h"

namespace heddle::cuda::grid_test {
namespace {

const Number infinite = HUGE_VALL, no_number = std::nanl("");

// Returns numbers of few values, so that many are equal, with some special ones.
Tensor with_ties(DType dtype, const Shape& shape, uint64_t seed, bool special = false) {
  Numbers numbers = conformance::numbers_of(*random_tensor(dtype, shape, dtype == DType::u8 ? 0 : -3, 4, seed));
  std::mt19937_64 dice(seed);
  for (Number& n : numbers.values) {
    n = std::floor(n);
    if (special && dice() % 7 == 0) n = std::array{infinite, -infinite, no_number, -0.0L}[dice() % 4];
  }
  return conformance::blob_of(numbers);
}

// ---------------------------------------------------------------- ArgMax, ArgMin

bool farther(Number a, Number b, bool maximum) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && !std::isnan(b);
  return maximum ? a > b : a < b;
}

GridCase extremum_at(const Tensor& x, int64_t axis, bool maximum, bool last, bool varies = false) {
  auto launches = std::make_unique<AxisReduction>();
  launches->passes.last.shape.kind = maximum ? ReduceKind::arg_max : ReduceKind::arg_min;
  launches->passes.last.shape.last_index = last;
  launches->axis = axis;
  GridCase one;
  one.name = std::string(maximum ? "ArgMax" : "ArgMin") + (last ? " last" : "") + " of " + to_string(x->dtype) + x->shape.text() +
             " along " + std::to_string(axis);
  one.launches = std::move(launches);
  one.inputs = {x};
  one.expected = {reduced(conformance::numbers_of(*x), 1u << axis, true, DType::i64, [&](const Elements& line) {
    size_t best = 0;
    for (size_t i = 1; i < line.size(); ++i)
      if (farther(line[i], line[best], maximum) || (last && !farther(line[best], line[i], maximum))) best = i;
    return Scaled{static_cast<Number>(best), 0};
  })};
  one.ulps = one.host_ulps = 0;
  one.varies = varies;
  one.host = maximum ? "ArgMax" : "ArgMin";
  one.attributes = {{"axis", axis}, {"keepdims", int64_t{1}}, {"select_last_index", int64_t{last}}};
  return one;
}

TEST(SelectSource, ArgMaxAndArgMinWithTies) {
  std::vector<GridCase> cases;
  for (const DType dtype : number_kinds)
    for (const bool maximum : {true, false})
      for (const bool last : {true, false}) {
        const bool special = conformance::is_floating(dtype);
        cases.push_back(extremum_at(with_ties(dtype, Shape{5, 40}, 1, special), 1, maximum, last));
        cases.push_back(extremum_at(with_ties(dtype, Shape{3, 33, 6}, 2, special), 1, maximum, last));
      }
  for (const int64_t n : {1, 31, 32, 33, 1023, 1024, 1025, 9000, 70001}) {
    cases.push_back(extremum_at(with_ties(DType::f32, Shape{2, n}, 3), 1, true, n % 2 == 0));
    cases.push_back(extremum_at(with_ties(DType::i8, Shape{n, 3}, 4), 0, false, n % 2 == 0));
  }
  for (int64_t axis = 0; axis < 3; ++axis) cases.push_back(extremum_at(with_ties(DType::f32, Shape{4, 7, 5}, 5), axis, true, false, true));
  cases.push_back(extremum_at(with_ties(DType::f32, Shape{0, 7}, 6), 1, true, false));
  const Tensor ordered = tensor_of(DType::i64, Shape{3}, {9007199254740993, 9007199254740992, 9007199254740994});
  cases.push_back(extremum_at(ordered, 0, true, false));
  run_on_grid(std::move(cases));
}

// ---------------------------------------------------------------- TopK

GridCase first_of(const Tensor& x, int axis, int64_t k, bool largest, bool varies = false) {
  auto launches = std::make_unique<TopKLaunches>();
  launches->axis = axis;
  launches->largest = largest;
  GridCase one;
  one.name = std::string(largest ? "largest " : "smallest ") + std::to_string(k) + " of " + to_string(x->dtype) + x->shape.text() +
             " along " + std::to_string(axis);
  one.launches = std::move(launches);
  one.inputs = {x, integers({k})};
  const Numbers numbers = conformance::numbers_of(*x);
  const Lines lines(numbers, 1u << axis);
  Shape shape;
  for (int i = 0; i < x->shape.rank(); ++i) shape.push_back(i == axis ? k : x->shape[i]);
  Numbers values = conformance::zeros(x->dtype, shape), indices = conformance::zeros(DType::i64, shape);
  std::vector<std::vector<size_t>> order;
  for (const Elements& line : lines.elements) {
    std::vector<size_t> of_line(line.size());
    std::iota(of_line.begin(), of_line.end(), size_t{0});
    std::stable_sort(of_line.begin(), of_line.end(), [&](size_t a, size_t b) {
      // NaN is larger than all numbers.
      if (std::isnan(line[a]) || std::isnan(line[b]))
        return largest ? std::isnan(line[a]) && !std::isnan(line[b]) : !std::isnan(line[a]) && std::isnan(line[b]);
      return largest ? line[a] > line[b] : line[a] < line[b];
    });
    order.push_back(of_line);
  }
  for (int64_t i = 0; i < values.size(); ++i) {
    const Ints position = conformance::position_of(i, shape);
    const auto line = static_cast<size_t>(conformance::broadcast_flat(position, lines.kept));
    const size_t from = order[line][static_cast<size_t>(position[static_cast<size_t>(axis)])];
    values.values[static_cast<size_t>(i)] = lines.elements[line][from];
    indices.values[static_cast<size_t>(i)] = static_cast<Number>(from);
  }
  one.expected = {values, indices};
  one.ulps = one.host_ulps = 0;
  one.varies = varies;
  one.host = "TopK";
  one.attributes = {{"axis", int64_t{axis}}, {"largest", int64_t{largest}}};
  return one;
}

TEST(SelectSource, TopKWithTies) {
  std::vector<GridCase> cases;
  for (const DType dtype : number_kinds)
    for (const bool largest : {true, false}) {
      const bool special = conformance::is_floating(dtype);
      cases.push_back(first_of(with_ties(dtype, Shape{5, 40}, 1, special), 1, 7, largest));
      cases.push_back(first_of(with_ties(dtype, Shape{3, 33, 6}, 2, special), 1, 33, largest));
    }
  for (const int64_t n : {1, 2, 31, 32, 33, 511, 512, 513, 1025, 2048}) {
    cases.push_back(first_of(with_ties(DType::f32, Shape{3, n}, 3), 1, std::min<int64_t>(n, 9), n % 2 == 0));
    cases.push_back(first_of(random_tensor(DType::f16, Shape{n, 2}, -9, 9, 4), 0, n, n % 2 == 0));
  }
  run_on_grid(std::move(cases));
}

TEST(SelectSource, TopKOfLongRows) {
  std::vector<GridCase> cases;
  cases.push_back(first_of(with_ties(DType::f32, Shape{2, 2049}, 5), 1, 5, true));
  cases.push_back(first_of(with_ties(DType::i64, Shape{1, 5000}, 6), 1, 1024, false));
  cases.push_back(first_of(random_tensor(DType::f16, Shape{3001, 3}, -9, 9, 7), 0, 50, true));
  cases.push_back(first_of(random_tensor(DType::f32, Shape{1, 17000}, -9, 9, 8), 1, 100, true));   // in parts
  cases.push_back(first_of(with_ties(DType::f64, Shape{1, 16500}, 9, true), 1, 3, false));         // in parts
  cases.push_back(first_of(random_tensor(DType::f32, Shape{1, 9000}, -9, 9, 10), 1, 1025, true));  // merged
  cases.push_back(first_of(with_ties(DType::i64, Shape{1, 4097, 2}, 11), 1, 4097, false));         // merged
  cases.push_back(first_of(with_ties(DType::f32, Shape{1, 4096}, 12), 1, 4096, true));             // merged
  cases.push_back(first_of(with_ties(DType::f32, Shape{2, 5001}, 13), 1, 3, true, true));
  cases.push_back(first_of(with_ties(DType::f32, Shape{2, 50}, 14), 1, 3, true, true));
  for (const size_t absent : {0, 1}) {
    cases.push_back(first_of(with_ties(DType::f32, Shape{2, 3000}, 15), 1, 20, false));
    cases.back().expected[absent] = {};
    cases.back().host.clear();  // all outputs of a separate call are requested
  }
  cases.push_back(first_of(with_ties(DType::f32, Shape{3, 0, 2}, 16), 1, 0, true));
  cases.push_back(first_of(with_ties(DType::f16, Shape{0, 5}, 17), 1, 2, true));
  run_on_grid(std::move(cases), 5);
}

TEST(SelectSource, TopKRefusesAnotherKThanItWasPlannedFor) {
  GridCase one = first_of(with_ties(DType::f32, Shape{2, 50}, 14), 1, 3, true, true);
  KernelSource source;
  ASSERT_TRUE(one.launches->choose(Operated(one).operands(), true, &source).ok());
  one.inputs[1] = integers({4});
  const Operated other(one);
  LaunchPlan plan;
  const plugin::Status planned = one.launches->plan(other.operands(), &plan);
  EXPECT_FALSE(planned.ok());
  EXPECT_NE(planned.text.find("K [4]"), std::string::npos) << planned.text;
}

// ---------------------------------------------------------------- CumSum

GridCase sums_along(const Tensor& x, int axis, bool exclusive, bool reverse, bool varies = false) {
  auto launches = std::make_unique<ScanLaunches>();
  launches->exclusive = exclusive;
  launches->reverse = reverse;
  GridCase one;
  one.name = "CumSum of " + std::string(to_string(x->dtype)) + x->shape.text() + " along " + std::to_string(axis) +
             (exclusive ? " exclusive" : "") + (reverse ? " reverse" : "");
  one.launches = std::move(launches);
  one.inputs = {x, integers({axis % 2 == 0 ? axis : axis - x->shape.rank()})};
  Numbers y = conformance::numbers_of(*x);
  y.scale.assign(y.values.size(), 0);
  const Lines lines(y, 1u << axis);
  std::vector<Scaled> sums(lines.elements.size());
  for (int64_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<size_t>(reverse ? y.size() - 1 - i : i);
    Scaled& sum = sums[lines.line_of[at]];
    const Number element = y.values[at], before = sum.value;
    sum.value += element;
    sum.scale += std::fabs(element);
    y.values[at] = exclusive ? before : sum.value;
    y.scale[at] = sum.scale;
  }
  one.expected = {conformance::is_floating(x->dtype) ? y : conformance::numbers_of(*conformance::blob_of(y))};
  one.varies = varies;
  one.host = "CumSum";
  one.attributes = {{"exclusive", int64_t{exclusive}}, {"reverse", int64_t{reverse}}};
  return one;
}

TEST(SelectSource, CumSum) {
  std::vector<GridCase> cases;
  int turn = 0;
  for (const DType dtype : number_kinds)
    for (int way = 0; way < 4; ++way) {
      const auto make = [&](const Shape& shape) {
        return random_tensor(dtype, shape, dtype < DType::u8 ? -50 : 0, 50, static_cast<uint64_t>(++turn));
      };
      cases.push_back(sums_along(make(Shape{3, 130}), 1, (way & 1) != 0, (way & 2) != 0));
      cases.push_back(sums_along(make(Shape{2, 19, 7}), 1, (way & 1) != 0, (way & 2) != 0));
    }
  for (const int64_t n : {1, 31, 32, 33, 64, 65, 1023, 1024, 1025, 4096, 4100})
    for (int way = 0; way < 4; ++way)
      cases.push_back(sums_along(random_tensor(DType::f32, Shape{2, n}, -1, 1, 3), 1, (way & 1) != 0, (way & 2) != 0));
  for (int way = 0; way < 4; ++way) {  // in parts
    cases.push_back(sums_along(random_tensor(DType::f32, Shape{20001}, -1, 1, 4), 0, (way & 1) != 0, (way & 2) != 0));
    cases.push_back(sums_along(random_tensor(DType::i64, Shape{2, 17000}, -99, 99, 5), 1, (way & 1) != 0, (way & 2) != 0));
    cases.push_back(sums_along(random_tensor(DType::f16, Shape{2, 1001, 5}, -1, 1, 6), 1, (way & 1) != 0, (way & 2) != 0));
    for (int axis = 0; axis < 3; ++axis)
      cases.push_back(sums_along(random_tensor(DType::f32, Shape{3, 70, 5}, -1, 1, 6), axis, (way & 1) != 0, (way & 2) != 0, true));
  }
  cases.push_back(sums_along(random_tensor(DType::f32, Shape{3, 0, 5}, -1, 1, 7), 1, false, false));
  cases.push_back(sums_along(random_tensor(DType::f16, Shape{0, 70}, -1, 1, 8), 1, true, false));
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
