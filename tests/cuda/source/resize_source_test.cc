// Resize on the emulated grid, compared with the host's: its bits.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/image/resize_launches.h"

namespace heddle::cuda::grid_test {
namespace {

using operators::Coordinates;
using operators::Interpolation;
using operators::NearestRounding;
using operators::ResizeNode;

// Names in the order of the enumerations.
constexpr const char* modes[] = {"nearest", "linear", "cubic"};
constexpr const char* coordinate_modes[] = {"half_pixel",    "half_pixel_symmetric", "pytorch_half_pixel",
                                            "align_corners", "asymmetric",           "tf_crop_and_resize"};
constexpr const char* roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "floor_or_ceil"};
constexpr const char* policies[] = {"stretch", "not_larger", "not_smaller"};
constexpr DType all_kinds[] = {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i8,  DType::i16,    DType::i32,
                               DType::i64, DType::u8,   DType::u16, DType::u32, DType::u64, DType::boolean};

// The options of a Resize; scales or sizes.
struct Resized {
  ResizeNode node = {};
  std::vector<float> scales = {};
  Ints sizes = {};
  Tensor roi = nullptr;
};

Resized by(Interpolation mode, Coordinates coordinates, std::vector<float> scales, Ints sizes = {}) {
  Resized how;
  how.node.options.interpolation = mode;
  how.node.options.coordinates = coordinates;
  how.scales = std::move(scales);
  how.sizes = std::move(sizes);
  return how;
}

std::vector<Attribute> attributes_of(const ResizeNode& node) {
  const operators::ResizeOptions& o = node.options;
  std::vector<Attribute> list = {{"mode", std::string(modes[static_cast<size_t>(o.interpolation)])},
                                 {"coordinate_transformation_mode", std::string(coordinate_modes[static_cast<size_t>(o.coordinates)])},
                                 {"nearest_mode", std::string(roundings[static_cast<size_t>(o.rounding)])},
                                 {"keep_aspect_ratio_policy", std::string(policies[static_cast<size_t>(node.policy)])},
                                 {"antialias", int64_t{o.antialias}},
                                 {"exclude_outside", int64_t{o.exclude_outside}},
                                 {"cubic_coeff_a", o.cubic_coefficient},
                                 {"extrapolation_value", o.extrapolation}};
  if (!node.axes.empty()) list.push_back({"axes", node.axes});
  return list;
}

GridCase resize(const Tensor& x, const Resized& how) {
  GridCase one;
  auto launches = std::make_unique<ResizeLaunches>();
  launches->node = how.node;
  one.launches = std::move(launches);
  one.ulps = 0;
  one.name = std::string(modes[static_cast<size_t>(how.node.options.interpolation)]) + " " +
             coordinate_modes[static_cast<size_t>(how.node.options.coordinates)] + " of " + to_string(x->dtype) + x->shape.text();
  const auto count = static_cast<int64_t>(how.scales.size());
  one.inputs = {x, how.roi, count > 0 ? Blob::copy_of(DType::f32, Shape{count}, how.scales.data()) : nullptr,
                how.sizes.empty() ? nullptr : integers(how.sizes)};
  const auto host = run_operator(testing::cpu_registry(), testing::call_of("Resize", one.inputs, attributes_of(how.node), 1));
  EXPECT_TRUE(host.ok()) << one.name << ": " << host.status().text();
  if (host.ok()) one.expected.push_back(conformance::numbers_of(*(*host)[0]));
  return one;
}

Tensor numbers(DType dtype, const Shape& shape, uint64_t seed) {
  if (dtype == DType::boolean) return random_tensor(dtype, shape, 0, 2, seed);
  return random_tensor(dtype, shape, conformance::is_floating(dtype) || dtype < DType::u8 ? -9 : 0, 30, seed);
}
constexpr Interpolation all_modes[] = {Interpolation::nearest, Interpolation::linear, Interpolation::cubic};
constexpr Coordinates uncropped[] = {Coordinates::half_pixel, Coordinates::half_pixel_symmetric, Coordinates::pytorch_half_pixel,
                                     Coordinates::align_corners, Coordinates::asymmetric};

TEST(ResizeSource, EveryDtype) {
  std::vector<GridCase> cases;
  for (const DType dtype : all_kinds)
    for (const Interpolation mode : all_modes) {
      const Tensor x = numbers(dtype, Shape{2, 3, 5, 7}, 1);
      cases.push_back(resize(x, by(mode, Coordinates::half_pixel, {1, 1, 1.7f, 0.6f})));
      cases.push_back(resize(x, by(mode, Coordinates::align_corners, {}, {2, 3, 4, 11})));
    }
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, EveryCoordinateMode) {
  std::vector<GridCase> cases;
  for (const Interpolation mode : all_modes)
    for (const Coordinates coordinates : uncropped) {
      const Tensor x = random_tensor(DType::f32, Shape{2, 5, 6, 7}, -4, 5, 2);
      cases.push_back(resize(x, by(mode, coordinates, {1, 1, 2, 3})));
      cases.push_back(resize(x, by(mode, coordinates, {1.5f, 0.61f, 1.1f, 0.3f})));
      cases.push_back(resize(x, by(mode, coordinates, {1, 1, 1.1f, 1})));
      cases.push_back(resize(x, by(mode, coordinates, {1, 2, 1, 1})));
      cases.push_back(resize(x, by(mode, coordinates, {}, {1, 1, 1, 1})));
      cases.push_back(resize(x, by(mode, coordinates, {}, {3, 5, 1, 13})));
      cases.push_back(resize(random_tensor(DType::f32, Shape{300}, -4, 5, 3), by(mode, coordinates, {1.1f})));
      cases.push_back(resize(random_tensor(DType::f32, Shape{1, 2, 1, 1}, -4, 5, 3), by(mode, coordinates, {1, 1, 3, 2.5f})));
    }
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, EveryRounding) {
  std::vector<GridCase> cases;
  for (int rounding = 0; rounding <= static_cast<int>(NearestRounding::floor_or_ceil); ++rounding)
    for (const Coordinates coordinates : uncropped)
      for (const float scale : {0.3f, 0.5f, 1.1f, 2.0f, 7.3f}) {
        Resized how = by(Interpolation::nearest, coordinates, {1, scale});
        how.node.options.rounding = static_cast<NearestRounding>(rounding);
        if (how.node.options.rounding == NearestRounding::floor_or_ceil && scale == 0.5f) how.node.options.extrapolation = 3;
        cases.push_back(resize(random_tensor(DType::u8, Shape{3, 33}, 0, 200, 4), how));
      }
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, AntialiasedAndWithoutWhatLiesOutside) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::f32, DType::f64, DType::u8})
    for (const Interpolation mode : {Interpolation::linear, Interpolation::cubic})
      for (const Coordinates coordinates : uncropped)
        for (const int flags : {1, 2, 3}) {
          Resized how = by(mode, coordinates, {1, 0.45f, 0.23f});
          how.node.options.antialias = (flags & 1) != 0;
          how.node.options.exclude_outside = (flags & 2) != 0;
          how.node.options.cubic_coefficient = -0.5;
          cases.push_back(resize(numbers(dtype, Shape{2, 11, 17}, 5), how));
          how.scales = {1, 1.3f, 0.6f};
          cases.push_back(resize(numbers(dtype, Shape{2, 11, 17}, 6), how));
        }
  run_on_grid(std::move(cases));
}

// The roi is read where the kernel runs.
TEST(ResizeSource, Crops) {
  std::vector<GridCase> cases;
  const Number nan = std::nan("");
  const std::vector<Elements> rois = {{0, 0, 0.25, 0.1, 1, 1, 1, 0.7},    {0, 0, -0.3, 0.5, 1, 1, 0.6, 1.4},
                                      {0, 0, 0.75, 0.2, 1, 1, 0.25, nan}, {0, 0, 0, 0.25, 1, 1, 1, 0.75},
                                      {0.2, 0, 0, 0, 1, 0.9, 1, 1},       {0, 0, 0, 0, 1, 1, 1, 1}};
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64, DType::i16})
    for (const Interpolation mode : all_modes)
      for (size_t r = 0; r < rois.size(); ++r) {
        Resized how = by(mode, Coordinates::tf_crop_and_resize, {}, r % 2 == 0 ? Ints{2, 3, 8, 9} : Ints{2, 3, 5, 7});
        how.node.options.extrapolation = 2.5;
        how.roi = tensor_of(float_kinds[r % 4], Shape{8}, rois[r]);
        cases.push_back(resize(numbers(dtype, Shape{2, 3, 5, 7}, 7), how));
        // A trailing axis that the roi turns out to leave unchanged is summed last here, and not at all on the host.
        if (r >= 4) cases.back().ulps = 4;
      }
  Resized some = by(Interpolation::linear, Coordinates::tf_crop_and_resize, {2, 0.5f});
  some.node.axes = {-1, 1};
  some.roi = tensor_of(DType::f32, Shape{4}, {0.25, -0.25, 1.25, 0.5});
  cases.push_back(resize(random_tensor(DType::f32, Shape{2, 6, 5, 7}, -4, 5, 8), some));
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, AxesAndAspectRatios) {
  std::vector<GridCase> cases;
  for (const Interpolation mode : all_modes)
    for (const auto policy : {ResizeNode::Policy::stretch, ResizeNode::Policy::not_larger, ResizeNode::Policy::not_smaller}) {
      Resized how = by(mode, Coordinates::half_pixel, {}, {9, 5});
      how.node.policy = policy;
      how.node.axes = {3, -3};
      cases.push_back(resize(random_tensor(DType::f32, Shape{2, 3, 5, 7}, -4, 5, 9), how));
    }
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, EveryRank) {
  std::vector<GridCase> cases;
  Shape shape;
  std::vector<float> scales;
  for (int rank = 1; rank <= HEDDLE_MAX_RANK; ++rank) {
    shape.push_back(2 + rank % 2);
    scales.push_back(rank % 3 == 0 ? 1 : 1.5f);
    for (const Interpolation mode : all_modes)
      if (mode != Interpolation::cubic || rank <= 4)
        cases.push_back(resize(random_tensor(DType::f32, shape, -4, 5, 10), by(mode, Coordinates::half_pixel, scales)));
  }
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, ChannelsLast) {
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f16, DType::f32, DType::u8})
    for (const Interpolation mode : all_modes)
      for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{2, 3, 9}, Shape{1, 2, 3, 4, 5}}) {
        std::vector<float> scales = {1, 1, 1.7f, 0.6f, 2};
        scales.resize(static_cast<size_t>(shape.rank()));
        cases.push_back(resize(numbers(dtype, shape, 11), by(mode, Coordinates::half_pixel, scales)));
        GridCase& one = cases.back();
        one.layout = plugin::channels_last(shape.rank());
        one.resized = true;
        one.inputs[0] = conformance::in_layout(one.inputs[0], one.layout);
      }
  run_on_grid(std::move(cases));
}

// If operands come with each run, the kernels are made before they are known.
TEST(ResizeSource, WhatVaries) {
  std::vector<GridCase> cases;
  for (const Interpolation mode : all_modes)
    for (const Shape& shape : {Shape{2, 3, 5, 7}, Shape{4, 6}, Shape{9}})
      for (const float scale : {1.0f, 0.5f, 1.9f})
        for (const bool antialias : {false, true}) {
          std::vector<float> scales(static_cast<size_t>(shape.rank()), 1);
          scales.front() = scale;
          if (shape.rank() > 2) scales[2] = scale;
          Resized how = by(mode, Coordinates::half_pixel, scales);
          how.node.options.antialias = antialias && mode != Interpolation::nearest;
          cases.push_back(resize(random_tensor(DType::f32, shape, -4, 5, 12), how));
          cases.back().varies = true;
        }
  run_on_grid(std::move(cases));
}

// Tables are large enough for any scales that lead to the output; other scales are refused.
TEST(ResizeSource, OperandsOfARun) {
  const Tensor x = random_tensor(DType::f32, Shape{8, 40}, -4, 5, 13),
               y = conformance::blob_of(conformance::zeros(DType::f32, Shape{8, 13}));
  ResizeLaunches launches;
  launches.node.options.interpolation = Interpolation::linear;
  launches.node.options.antialias = true;
  const Tensor sizes = integers({8, 13}), wrong = integers({8, 14});
  View in(*x), out(*y), unknown(*sizes), known(*sizes), other(*wrong);
  auto& late = const_cast<heddle_tensor&>(*unknown.get());
  late.data = nullptr;
  late.flags = 0;
  const heddle_tensor* const outputs[] = {out.get()};
  const heddle_tensor* inputs[] = {in.get(), nullptr, nullptr, &late};
  KernelSource source;
  ASSERT_TRUE(launches.choose({inputs, outputs, 4, 1}, false, &source).ok());
  EXPECT_TRUE(launches.varies());
  const auto before = std::make_unique<LaunchPlan>(), run = std::make_unique<LaunchPlan>(), refused = std::make_unique<LaunchPlan>();
  ASSERT_TRUE(launches.plan({inputs, outputs, 4, 1}, before.get()).ok());
  EXPECT_EQ(before->launch_count, 0u);
  inputs[3] = known.get();
  ASSERT_TRUE(launches.plan({inputs, outputs, 4, 1}, run.get()).ok());
  EXPECT_EQ(run->launch_count, 2u);
  EXPECT_GT(run->scratch_bytes, 0u);
  EXPECT_LE(run->scratch_bytes, before->scratch_bytes);
  inputs[3] = other.get();
  EXPECT_FALSE(launches.plan({inputs, outputs, 4, 1}, refused.get()).ok());
}

TEST(ResizeSource, NaNAndInfinities) {
  const Number nan = std::nan(""), inf = HUGE_VAL;
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const Interpolation mode : all_modes) {
      const Tensor x = tensor_of(dtype, Shape{2, 5}, {1, inf, -inf, nan, 2, inf, 1, 2, 3, nan});
      cases.push_back(resize(x, by(mode, Coordinates::asymmetric, {2, 2})));
      cases.push_back(resize(x, by(mode, Coordinates::align_corners, {1, 2})));
      cases.push_back(resize(x, by(mode, Coordinates::half_pixel, {1, 1})));
    }
  run_on_grid(std::move(cases));
}

TEST(ResizeSource, NothingOfNothing) {
  for (const bool varies : {false, true}) {
    GridCase one = resize(random_tensor(DType::f32, Shape{3, 4}, 0, 1, 14), by(Interpolation::linear, Coordinates::half_pixel, {1, 0.2f}));
    EXPECT_EQ(one.expected[0].shape, (Shape{3, 0}));
    const Operated operated(one);
    KernelSource source;
    ASSERT_TRUE(one.launches->choose(operated.operands(), varies, &source).ok());
    EXPECT_EQ(source.entries.empty(), !varies);
    const auto plan = std::make_unique<LaunchPlan>();
    ASSERT_TRUE(one.launches->plan(operated.operands(), plan.get()).ok());
    EXPECT_EQ(plan->launch_count, 0u);
  }
}

}  // namespace
}  // namespace heddle::cuda::grid_test
