// The generated kernel that combines the parts of a group, on the emulated grid, compared with a tree of the same order that is computed in
// the same type: the same bits, whichever part the kernel's own is.
#include <gtest/gtest.h>

#include <cmath>
#include <type_traits>

#include "generate/operators/combine_launches.h"
#include "move_run.h"

namespace heddle::cuda::grid_test {
namespace {

using conformance::Number;
using operators::Reduction;

template <class C>
C next(Reduction reduction, C left, C right) {
  if constexpr (std::is_integral_v<C>) {
    using U = std::make_unsigned_t<C>;
    if (reduction == Reduction::prod) return static_cast<C>(static_cast<U>(left) * static_cast<U>(right));
    if (reduction == Reduction::sum || reduction == Reduction::mean) return static_cast<C>(static_cast<U>(left) + static_cast<U>(right));
  } else {
    if (reduction == Reduction::prod) return left * right;
    if (reduction == Reduction::sum || reduction == Reduction::mean) return left + right;
    if (std::isnan(left) || std::isnan(right)) return NAN;
  }
  return reduction == Reduction::min ? std::min(left, right) : std::max(left, right);
}

// The left tree of each pair is full.
template <class C>
C combined(Reduction reduction, const std::vector<C>& parts, size_t begin, size_t end) {
  if (end - begin == 1) return parts[begin];
  size_t left = 1;
  while (2 * left < end - begin) left *= 2;
  return next(reduction, combined(reduction, parts, begin, begin + left), combined(reduction, parts, begin + left, end));
}

template <class C>
Number expected(Reduction reduction, const std::vector<Number>& numbers) {
  const std::vector<C> parts(numbers.begin(), numbers.end());
  const C all = combined(reduction, parts, 0, parts.size());
  return reduction == Reduction::mean ? all / static_cast<C>(parts.size()) : all;
}

Number expected(DType dtype, Reduction reduction, const std::vector<Number>& numbers) {
  return dtype == DType::f64   ? expected<double>(reduction, numbers)
         : dtype == DType::i64 ? expected<int64_t>(reduction, numbers)
         : dtype == DType::i32 ? expected<int32_t>(reduction, numbers)
                               : conformance::rounded(dtype, expected<float>(reduction, numbers));
}

GridCase combine_case(DType dtype, Reduction reduction, int64_t parts, int64_t self, int64_t count) {
  GridCase one;
  one.name = "reduction " + std::to_string(static_cast<int>(reduction)) + " of " + std::to_string(parts) + " parts in " +
             std::string(to_string(dtype)) + ", own " + std::to_string(self);
  auto launches = std::make_unique<CombineLaunches>();
  launches->reduction = reduction;
  launches->parts = parts;
  launches->self = self;
  one.launches = std::move(launches);
  std::vector<conformance::Numbers> all;
  conformance::Numbers others = {dtype, Shape{parts - 1, count}, {}, {}};
  for (int64_t part = 0; part < parts; ++part) {
    all.push_back(conformance::numbers_of(*random_tensor(dtype, Shape{count}, -9, 9, static_cast<uint64_t>(part + 1))));
    if (conformance::is_floating(dtype) && part % 2 == 1) all.back().values[0] = NAN;
    if (conformance::is_floating(dtype)) all.back().values[1] = part % 2 == 0 ? 0.0L : -0.0L;
    if (conformance::is_floating(dtype)) all.back().values[2] = part % 2 == 0 ? -0.0L : 0.0L;
    if (part != self) others.values.insert(others.values.end(), all.back().values.begin(), all.back().values.end());
  }
  one.inputs = {conformance::blob_of(all[static_cast<size_t>(self)]), conformance::blob_of(others)};
  conformance::Numbers want = {dtype, Shape{count}, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(count); ++i) {
    std::vector<Number> numbers;
    for (const conformance::Numbers& part : all) numbers.push_back(part.values[i]);
    want.values.push_back(expected(dtype, reduction, numbers));
  }
  one.expected = {want};
  one.ulps = 0;
  return one;
}

TEST(CombineSource, HasTheBitsOfATreeOfFixedOrder) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i32, DType::i64})
    for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::min, Reduction::max, Reduction::prod})
      for (const int64_t parts : {2, 3, 7}) cases.push_back(combine_case(dtype, reduction, parts, parts / 2, 300));
  for (int64_t self = 0; self < 5; ++self) cases.push_back(combine_case(DType::f32, Reduction::sum, 5, self, 77));
  cases.push_back(combine_case(DType::f32, Reduction::sum, 64, 63, 20));
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
