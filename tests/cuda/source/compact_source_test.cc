// Generated kernels of Compress and NonZero, on the emulated grid, compared with the host's operators: the same elements, and the same
// number.
#include <gtest/gtest.h>

#include "generate/select/compact_launches.h"
#include "move_run.h"

namespace heddle::cuda::grid_test {
namespace {

// A call, the extents that its output is planned with, and the axis of the extent that is found. `bounded`: the extent has a slot;
// otherwise it was known before.
struct CompactCase {
  MoveCase move;
  Shape planned;
  int axis = 0;
  bool bounded = true;
};

void run_compact(const CompactCase& one, const grid::Module& module, const KernelSource& source) {
  const Tensor wanted = wanted_of(one.move).at(0);
  for (const grid::Order order : {grid::Order::ascending, grid::Order::descending, grid::Order::random}) {
    int64_t extent = -1;
    const Moved moved(one.move, {conformance::blob_of(conformance::zeros(wanted->dtype, one.planned))}, false);
    const Operands operands = moved.operands();
    if (one.bounded) const_cast<heddle_tensor*>(operands.outputs[0])->extent = &extent;
    const auto plan = std::make_unique<LaunchPlan>();
    ASSERT_TRUE(one.move.launches->plan(operands, plan.get()).ok()) << one.move.name();
    ASSERT_EQ(launch_plan(module, source, *plan, operands, order), "") << one.move.name();
    EXPECT_EQ(extent, one.bounded ? wanted->shape[one.axis] : -1) << one.move.name();
    EXPECT_EQ(std::memcmp(moved.outputs()[0]->data, wanted->data, static_cast<size_t>(wanted->bytes)), 0)
        << one.move.name() << ", order " << static_cast<int>(order);
    // Nothing was written after the elements that exist.
    for (int64_t i = wanted->bytes; i < moved.outputs()[0]->bytes; ++i)
      ASSERT_EQ(moved.outputs()[0]->data[i], std::byte{0xa5}) << one.move.name() << ", byte " << i;
  }
}

void run_compacts(const std::vector<CompactCase>& cases, size_t per_module = 40) {
  for (size_t first = 0; first < cases.size(); first += per_module) {
    const size_t last = std::min(cases.size(), first + per_module);
    std::string text(texts().at("element")), error;
    std::vector<KernelSource> sources(last - first);
    for (size_t i = first; i < last; ++i) {
      KernelSource& source = sources[i - first];
      source.prefix = "k" + std::to_string(i - first) + "_";
      const Moved moved(cases[i].move, {conformance::blob_of(conformance::zeros(DType::i64, cases[i].planned))}, false);
      ASSERT_TRUE(cases[i].move.launches->choose(moved.operands(), cases[i].move.varies, &source).ok());
      text += source.text;
    }
    const auto module = grid::Module::compile(text, grid_cache, &error);
    ASSERT_NE(module, nullptr) << error.substr(0, 4000);
    for (size_t i = first; i < last; ++i) ASSERT_NO_FATAL_FAILURE(run_compact(cases[i], *module, sources[i - first]));
  }
}

// Returns zeros and other numbers, a given part of them zeros; zeros of floats have either sign.
Tensor with_zeros(DType dtype, const Shape& shape, double part, uint64_t seed) {
  Numbers numbers = conformance::zeros(dtype, shape);
  std::mt19937_64 dice(seed);
  for (Number& n : numbers.values) {
    const bool zero = static_cast<double>(dice() >> 11) * 0x1p-53 < part;
    n = zero ? (conformance::is_floating(dtype) && dice() % 2 == 0 ? -0.0L : 0.0L) : 1.0L;
  }
  return conformance::blob_of(numbers);
}

TEST(CompactSource, NonZero) {
  std::vector<CompactCase> cases;
  for (const auto& [number, dtype] : conformance::onnx_dtypes())
    for (const Shape& shape : {Shape{}, Shape{7}, Shape{0, 3}, Shape{5, 33}, Shape{3, 1, 2, 9}, Shape{9000}, Shape{70, 5, 41}}) {
      if (dtype != DType::f32 && shape != Shape{5, 33}) continue;
      for (const double part : {0.0, 0.6, 1.0}) {
        if (part != 0.6 && dtype != DType::f32) continue;
        cases.push_back({move_case(std::make_unique<NonZeroLaunches>(), "NonZero", {with_zeros(dtype, shape, part, 3)}),
                         Shape{shape.rank(), shape.element_count()}, 1});
        cases.back().move.varies = part == 1.0;
      }
    }
  run_compacts(cases);
}

Tensor condition_of(int64_t count, double part) {
  return with_zeros(DType::boolean, Shape{count}, 1 - part, 11);
}

// `axis` past the last: none.
CompactCase compress_case(DType dtype, const Shape& shape, int64_t axis, const Tensor& condition) {
  auto launches = std::make_unique<CompressLaunches>();
  std::vector<Attribute> attributes;
  Shape planned{condition->shape[0]};
  int at = 0;
  if (axis < shape.rank()) {
    launches->flat = false;
    launches->axis = axis;
    attributes.push_back({"axis", axis});
    at = static_cast<int>(axis < 0 ? axis + shape.rank() : axis);
    planned = shape;
    planned[at] = condition->shape[0];
  }
  return {move_case(std::move(launches), "Compress", {any_bytes(dtype, shape, 5), condition}, attributes), planned, at};
}

TEST(CompactSource, Compress) {
  std::vector<CompactCase> cases;
  for (const DType dtype : width_kinds)
    for (const double part : {0.0, 0.4, 1.0}) {
      if (part != 0.4 && dtype != DType::bf16) continue;
      cases.push_back(compress_case(dtype, Shape{7, 31}, 9, condition_of(200, part)));
      cases.push_back(compress_case(dtype, Shape{7, 31}, 0, condition_of(6, part)));
      cases.push_back(compress_case(dtype, Shape{7, 31}, -1, condition_of(31, part)));
      cases.push_back(compress_case(dtype, Shape{3, 20, 16}, 1, condition_of(17, part)));
      cases.push_back(compress_case(dtype, Shape{9000}, 0, condition_of(8999, part)));
      cases.push_back(compress_case(dtype, Shape{3, 0}, 0, condition_of(3, part)));
      cases.push_back(compress_case(dtype, Shape{3, 4}, 1, condition_of(0, part)));
      for (size_t i = cases.size() - 7; i < cases.size(); ++i) cases[i].move.varies = part == 1.0;
    }
  run_compacts(cases);
}

// An extent that was known before has no slot.
TEST(CompactSource, ExtentsThatWereKnown) {
  std::vector<CompactCase> cases;
  for (const int64_t axis : {0, 1, 9}) {
    const Tensor condition = condition_of(5, 0.5);
    cases.push_back(compress_case(DType::f32, Shape{6, 5}, axis, condition));
    cases.back().planned = wanted_of(cases.back().move).at(0)->shape;
    cases.back().bounded = false;
  }
  run_compacts(cases);
}

}  // namespace
}  // namespace heddle::cuda::grid_test
