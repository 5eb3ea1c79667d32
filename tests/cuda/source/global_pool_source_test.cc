// Global pools on the emulated grid, which are reductions of all dimensions after the channels.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/reduce/reduce_launches.h"

namespace heddle::cuda::grid_test {
namespace {

// Returns the result for the elements of one channel. p: of a norm.
Scaled pooled(ReduceKind kind, int64_t p, const Elements& x) {
  if (kind == ReduceKind::max) {
    Number most = -HUGE_VALL;
    for (const Number n : x) most = std::max(most, n);
    return {most, 0};
  }
  Scaled sum;
  for (const Number n : x) {
    sum.value += kind == ReduceKind::mean ? n : std::pow(std::fabs(n), static_cast<Number>(p));
    sum.scale += std::fabs(n);
  }
  if (kind == ReduceKind::mean) {
    const Number count = std::max<Number>(1, static_cast<Number>(x.size()));
    return {sum.value / count, sum.scale / count};
  }
  const Number norm = std::pow(sum.value, 1 / static_cast<Number>(p));
  return {norm, norm};
}

GridCase pool(ReduceKind kind, int64_t p, const Tensor& x, bool varies = false) {
  GridCase one;
  one.host = kind == ReduceKind::mean ? "GlobalAveragePool" : kind == ReduceKind::max ? "GlobalMaxPool" : "GlobalLpPool";
  one.name = one.host + " of " + to_string(x->dtype) + x->shape.text() + " with " + std::to_string(p);
  if (kind == ReduceKind::power) one.attributes = {{"p", p}};
  one.launches = std::make_unique<SpatialReduction>(kind, p);
  one.inputs = {x};
  const uint32_t set = ((1u << x->shape.rank()) - 1) & ~3u;
  one.expected = {
      reduced(conformance::numbers_of(*x), set, true, x->dtype, [&](const Elements& channel) { return pooled(kind, p, channel); })};
  one.varies = varies;
  return one;
}

TEST(GlobalPoolSource, MeansLargestElementsAndNorms) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{3, 8, 8, 16}, Shape{2, 33, 1}, Shape{1, 3, 70, 71}, Shape{1, 1, 4, 6, 3}}) {
      const Tensor x = random_tensor(dtype, shape, -4, 5, 1);
      cases.push_back(pool(ReduceKind::mean, 0, x, shape[1] == 8));
      cases.push_back(pool(ReduceKind::max, 0, x, shape[1] == 33));
      for (const int64_t p : {1, 2, 3, 5}) cases.push_back(pool(ReduceKind::power, p, x));
    }
  run_on_grid(std::move(cases));
}

// The mean of no elements is 0, unlike that of ReduceMean. The host refuses empty images, unless they are known only during the run.
TEST(GlobalPoolSource, Nothing) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Shape& shape : {Shape{2, 3, 0}, Shape{2, 3, 4, 0}, Shape{0, 3, 4}, Shape{2, 0, 4}})
      for (const bool varies : {false, true}) {
        const Tensor x = random_tensor(dtype, shape, -4, 5, 1);
        cases.push_back(pool(ReduceKind::mean, 0, x, varies));
        cases.push_back(pool(ReduceKind::max, 0, x, varies));
        cases.push_back(pool(ReduceKind::power, 3, x, varies));
      }
  for (GridCase& one : cases)
    if (one.inputs[0]->shape[2] == 0 || one.inputs[0]->shape.rank() == 4) one.host.clear();
  run_on_grid(std::move(cases));
}

TEST(GlobalPoolSource, ChannelsLastIsReadAsItLies) {
  heddle_layout last = {};
  last.rank = 4;
  for (int i = 0; i < 4; ++i) last.order[i] = static_cast<uint8_t>(std::array{0, 2, 3, 1}[static_cast<size_t>(i)]);
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const ReduceKind kind : {ReduceKind::mean, ReduceKind::max, ReduceKind::power}) {
      const Tensor x = random_tensor(dtype, Shape{2, 12, 5, 9}, -4, 5, 2);
      cases.push_back(pool(kind, 2, x));
      cases.back().layout = last;
      cases.back().inputs[0] = conformance::in_layout(x, last);
    }
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
