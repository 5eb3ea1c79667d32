// Generated reductions on the emulated grid, compared with plain sums in long double: every kind in every dtype that the host has it for,
// every way that dimensions are kept and reduced, rows and columns around the sizes of warps and blocks, in three orders of threads.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/reduce/reduce_launches.h"

namespace heddle::cuda::grid_test {
namespace {

struct Kind {
  const char *name, *host;  // the host's operator, if there is one
  ReduceKind kind;
  bool of_integers;
  double low, high;  // of elements of a test
  std::function<Scaled(const Elements&, DType)> fold;
};

Number magnitudes(const Elements& x, const std::function<Number(Number)>& term) {
  Number sum = 0;
  for (const Number n : x) sum += std::fabs(term(n));
  return sum;
}
Scaled summed(const Elements& x, const std::function<Number(Number)>& term) {
  Number sum = 0;
  for (const Number n : x) sum += term(n);
  return {sum, magnitudes(x, term)};
}
Number same(Number x) {
  return x;
}
Number square(Number x) {
  return x * x;
}

// Returns the end of the range that the extremum of no elements is.
Number end_of(DType dtype, bool lowest) {
  if (conformance::is_floating(dtype)) return lowest ? -HUGE_VALL : HUGE_VALL;
  if (dtype == DType::boolean) return lowest ? 0 : 1;
  const int bits = 8 * static_cast<int>(byte_width(dtype));
  const bool has_sign = dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  if (!has_sign) return lowest ? 0 : std::ldexp(Number{1}, bits) - 1;
  return lowest ? -std::ldexp(Number{1}, bits - 1) : std::ldexp(Number{1}, bits - 1) - 1;
}
Scaled extremum(const Elements& x, DType dtype, bool maximum) {
  Number best = end_of(dtype, maximum);
  for (const Number n : x)
    if (!std::isnan(best) && (std::isnan(n) || (maximum ? n > best : n < best))) best = n;
  return {best, 0};
}
Scaled mean(const Elements& x, DType dtype) {
  const Scaled sum = summed(x, same);
  const auto count = static_cast<Number>(x.size());
  if (!conformance::is_floating(dtype)) return {x.empty() ? 0 : std::trunc(sum.value / count), 0};
  return {sum.value / count, sum.scale / count};
}
Scaled product(const Elements& x, DType dtype) {
  if (!conformance::is_floating(dtype)) {  // wraps
    uint64_t bits = 1;
    for (const Number n : x) bits *= n < 0 ? ~static_cast<uint64_t>(-n) + 1 : static_cast<uint64_t>(n);
    return {dtype == DType::u64 ? static_cast<Number>(bits) : static_cast<Number>(static_cast<int64_t>(bits)), 0};
  }
  Number all = 1;
  for (const Number n : x) all *= n;
  return {all, std::fabs(all)};
}
Scaled log_sum_exp(const Elements& x, DType) {
  Number most = -HUGE_VALL, sum = 0;
  for (const Number n : x) most = std::isnan(n) || n > most ? n : most;
  for (const Number n : x) sum += std::exp(n);
  return {std::log(sum), std::isfinite(most) ? std::fabs(most) + 1 : 0};
}
Scaled whole(Scaled x, DType dtype) {
  return conformance::is_floating(dtype) ? x : Scaled{std::trunc(x.value), 0};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all = {
      {"sum", "ReduceSum", ReduceKind::sum, true, -50, 50, [](const Elements& x, DType) { return summed(x, same); }},
      {"mean", "ReduceMean", ReduceKind::mean, true, -50, 50, mean},
      {"max", "ReduceMax", ReduceKind::max, true, -50, 50, [](const Elements& x, DType d) { return extremum(x, d, true); }},
      {"min", "ReduceMin", ReduceKind::min, true, -50, 50, [](const Elements& x, DType d) { return extremum(x, d, false); }},
      {"product", "ReduceProd", ReduceKind::product, true, 0.9, 1.1, product},
      {"l1", "ReduceL1", ReduceKind::l1, true, -50, 50,
       [](const Elements& x, DType) { return summed(x, [](Number n) { return std::fabs(n); }); }},
      {"l2", "ReduceL2", ReduceKind::l2, true, -9, 9,
       [](const Elements& x, DType d) {
         const Number root = std::sqrt(summed(x, square).value);
         return whole({root, root}, d);
       }},
      {"sum_square", "ReduceSumSquare", ReduceKind::sum_square, true, -9, 9, [](const Elements& x, DType) { return summed(x, square); }},
      {"log_sum", "ReduceLogSum", ReduceKind::log_sum, true, 1, 9,
       [](const Elements& x, DType d) {
         const Scaled sum = summed(x, same);
         return whole({std::log(sum.value), sum.scale / std::fabs(sum.value)}, d);
       }},
      {"log_sum_exp", "ReduceLogSumExp", ReduceKind::log_sum_exp, false, -9, 9, log_sum_exp},
      {"power", "", ReduceKind::power, false, -2, 2, [](const Elements& x, DType) {
         const Number root = std::cbrt(summed(x, [](Number n) { return std::fabs(n * n * n); }).value);
         return Scaled{root, root};
       }}};
  return all;
}
const Kind& kind_of(const std::string& name) {
  for (const Kind& kind : kinds())
    if (kind.name == name) return kind;
  throw std::logic_error(name);
}

// Makes a reduction over the axes in `set`, given as in ONNX.
GridCase reduction(const Kind& kind, const Tensor& x, uint32_t set, bool keeps_dims, bool varies = false) {
  auto launches = std::make_unique<AxesReduction>();
  launches->passes.last.shape.kind = kind.kind;
  launches->passes.last.shape.exponent = 3;
  launches->keeps_dims = keeps_dims;
  launches->none_when_empty = true;
  std::vector<int64_t> axes;
  for (int i = 0; i < x->shape.rank(); ++i)
    if ((set >> i & 1) != 0) axes.push_back(i % 2 == 0 ? i : i - x->shape.rank());
  GridCase one;
  one.name = std::string(kind.name) + " of " + to_string(x->dtype) + x->shape.text() + " over " + std::to_string(set);
  one.launches = std::move(launches);
  one.inputs = {x, integers(axes)};
  const DType dtype = x->dtype;
  one.expected = {
      reduced(conformance::numbers_of(*x), set, keeps_dims, dtype, [&](const Elements& line) { return kind.fold(line, dtype); })};
  if (!conformance::is_floating(dtype))  // by the low bits
    one.expected[0] = conformance::numbers_of(*conformance::blob_of(one.expected[0]));
  one.varies = varies;
  one.host = kind.host;
  if (dtype == DType::f64) one.host_ulps = 64;
  one.attributes = {{"keepdims", int64_t{keeps_dims}}, {"noop_with_empty_axes", int64_t{1}}};
  return one;
}

Tensor elements_for(const Kind& kind, DType dtype, const Shape& shape, uint64_t seed = 5) {
  const bool real = conformance::is_floating(dtype);
  const bool has_sign = real || dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
  if (dtype == DType::boolean) return random_tensor(dtype, shape, 0, 2, seed);
  if (!real && kind.kind == ReduceKind::product) return random_tensor(dtype, shape, has_sign ? -3 : 1, 4, seed);
  return random_tensor(dtype, shape, has_sign ? kind.low : std::max(kind.low, 0.0), kind.high, seed);
}

TEST(ReduceSource, EveryKindInEveryDtype) {
  std::vector<GridCase> cases;
  for (const Kind& kind : kinds())
    for (const DType dtype : number_kinds) {
      if (!kind.of_integers && !conformance::is_floating(dtype)) continue;
      cases.push_back(reduction(kind, elements_for(kind, dtype, Shape{3, 5, 96}), 4, false));
      cases.push_back(reduction(kind, elements_for(kind, dtype, Shape{5, 17, 33}), 2, true));
    }
  for (const char* name : {"max", "min"}) {
    cases.push_back(reduction(kind_of(name), elements_for(kind_of(name), DType::boolean, Shape{3, 33}), 2, true));
    cases.push_back(reduction(kind_of(name), elements_for(kind_of(name), DType::boolean, Shape{33, 3}), 1, true));
  }
  run_on_grid(std::move(cases));
}

TEST(ReduceSource, EverySetOfAxes) {
  std::vector<GridCase> cases;
  const Kind& sum = kind_of("sum");
  for (uint32_t set = 0; set < 16; ++set)
    for (const bool keeps_dims : {false, true})
      for (const Shape& shape : {Shape{3, 4, 5, 6}, Shape{2, 1, 3, 8}, Shape{1, 2, 4, 1}})
        cases.push_back(reduction(sum, elements_for(sum, keeps_dims ? DType::f32 : DType::i16, shape, set), set, keeps_dims));
  cases.push_back(reduction(sum, elements_for(sum, DType::f32, Shape{}), 0, false));
  cases.push_back(reduction(sum, elements_for(sum, DType::f32, Shape{1, 2, 1, 3, 2, 1, 2, 3}), 0b10010010, true));
  cases.push_back(reduction(sum, elements_for(sum, DType::f32, Shape{2, 1, 2, 3, 2, 2, 2, 2}), 0b01010101, false));
  run_on_grid(std::move(cases));
}

TEST(ReduceSource, RowsAndColumnsAroundWarpsAndBlocks) {
  std::vector<GridCase> cases;
  const Kind &sum = kind_of("sum"), &most = kind_of("max"), &exponentials = kind_of("log_sum_exp");
  for (const int64_t n : {1, 2, 3, 8, 31, 32, 33, 64, 255, 256, 257, 1023, 1024, 1025, 2048, 4100})
    for (const DType dtype : {DType::f32, DType::f16}) {
      cases.push_back(reduction(sum, elements_for(sum, dtype, Shape{7, n}), 2, false));
      cases.push_back(reduction(sum, elements_for(sum, dtype, Shape{n, 7}), 1, false));
      cases.push_back(reduction(exponentials, elements_for(exponentials, dtype, Shape{2, n, 3}), 2, false));
    }
  for (const int64_t n : {1, 31, 33, 255, 257, 1025})
    cases.push_back(reduction(most, elements_for(most, DType::i8, Shape{n, 40}), 1, false));
  for (const int64_t n : {1, 4, 16, 40, 129}) cases.push_back(reduction(sum, elements_for(sum, DType::f32, Shape{n, 1028}), 1, false));
  run_on_grid(std::move(cases));
}

// Few outputs of many elements are folded in parts.
TEST(ReduceSource, FewLongRowsAreSplit) {
  std::vector<GridCase> cases;
  const Kind &sum = kind_of("sum"), &exponentials = kind_of("log_sum_exp"), &mean_of = kind_of("mean");
  cases.push_back(reduction(sum, elements_for(sum, DType::f32, Shape{100003}), 1, false));
  cases.push_back(reduction(sum, elements_for(sum, DType::f16, Shape{100000}), 1, true));
  cases.push_back(reduction(mean_of, elements_for(mean_of, DType::i32, Shape{3, 40000}), 2, false));
  cases.push_back(reduction(sum, elements_for(sum, DType::f32, Shape{20001, 3}), 1, false));
  cases.push_back(reduction(sum, elements_for(sum, DType::bf16, Shape{2, 5001, 8}), 2, false));
  cases.push_back(reduction(exponentials, elements_for(exponentials, DType::f32, Shape{70001}), 1, false));
  cases.push_back(reduction(exponentials, elements_for(exponentials, DType::f64, Shape{9001, 2}), 1, false));
  for (GridCase& one : cases) {
    KernelSource source;
    const Operated operated(one);
    ASSERT_TRUE(one.launches->choose(operated.operands(), false, &source).ok());
    EXPECT_NE(source.entries.back().find("_parts"), std::string::npos) << one.name;
  }
  run_on_grid(std::move(cases));
}

TEST(ReduceSource, NothingHasTheNumbersThatItHasOnTheHost) {
  std::vector<GridCase> cases;
  for (const char* name : {"sum", "max", "min", "product", "l1", "l2", "sum_square", "log_sum_exp"})
    for (const DType dtype : {DType::f32, DType::f16, DType::i8, DType::u32, DType::u64, DType::i64}) {
      const Kind& kind = kind_of(name);
      if (!kind.of_integers && !conformance::is_floating(dtype)) continue;
      cases.push_back(reduction(kind, elements_for(kind, dtype, Shape{3, 0, 2}), 2, false));
      cases.push_back(reduction(kind, elements_for(kind, dtype, Shape{0}), 1, true));
      cases.push_back(reduction(kind, elements_for(kind, dtype, Shape{0, 5}), 2, true));
    }
  run_on_grid(std::move(cases));
}

TEST(ReduceSource, InfinitiesAndNaN) {
  std::vector<GridCase> cases;
  const Number inf = HUGE_VALL, nan = std::nanl("");
  for (const Kind& kind : kinds())
    for (const DType dtype : float_kinds) {
      if (kind.kind == ReduceKind::power || kind.kind == ReduceKind::product) continue;
      const Tensor x = tensor_of(dtype, Shape{5, 4}, {inf, 1, 2, 3, -inf, -inf, 4, 4, nan, 5, 6, -inf, -0.0L, 0, 0, 0, inf, -inf, 2, 1});
      cases.push_back(reduction(kind, x, 2, false));
      cases.push_back(reduction(kind, x, 1, false));
    }
  // No loss is subtracted from a sum that is infinite.
  for (const Number huge : {3.0e38L, -3.0e38L}) {
    Elements values(2050, huge);
    cases.push_back(reduction(kind_of("sum"), tensor_of(DType::f32, Shape{2050}, values), 1, false));
    cases.back().expected[0].values = {huge > 0 ? inf : -inf};
  }
  run_on_grid(std::move(cases));
}

// One source serves all sets of axes, and smaller extents than it was made for.
TEST(ReduceSource, WhatVariesIsOneSource) {
  std::vector<GridCase> cases;
  for (const char* name : {"sum", "log_sum_exp", "mean"})
    for (uint32_t set = 0; set < 8; ++set)
      cases.push_back(reduction(kind_of(name), elements_for(kind_of(name), DType::f32, Shape{5, 33, 7}, set), set, set % 2 == 0, true));
  run_on_grid(std::move(cases));
}

TEST(ReduceSource, ChannelsLastIsReadAsItLies) {
  std::vector<GridCase> cases;
  heddle_layout last = {};
  last.rank = 4;
  for (int i = 0; i < 4; ++i) last.order[i] = static_cast<uint8_t>(std::array{0, 2, 3, 1}[static_cast<size_t>(i)]);
  for (uint32_t set = 1; set < 16; ++set) {
    const Kind& sum = kind_of("sum");
    const Tensor x = elements_for(sum, DType::f32, Shape{2, 8, 3, 5}, set);
    GridCase one = reduction(sum, x, set, false);
    one.layout = last;
    one.inputs[0] = conformance::in_layout(x, last);
    cases.push_back(std::move(one));
  }
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
