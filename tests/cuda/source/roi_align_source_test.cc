// RoiAlign on the emulated grid, compared with the host's.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/image/roi_align_launches.h"

namespace heddle::cuda::grid_test {
namespace {

using operators::RoiOptions;

RoiOptions options_of(bool takes_max, bool half_pixel, int64_t sampling_ratio = 0, double spatial_scale = 1) {
  RoiOptions options;
  options.takes_max = takes_max;
  options.half_pixel = half_pixel;
  options.sampling_ratio = sampling_ratio;
  options.spatial_scale = spatial_scale;
  return options;
}

// The host adds in double, the kernel in float.
GridCase align(const Tensor& x, const Tensor& rois, const std::vector<int64_t>& batches, const RoiOptions& options, int64_t height = 3,
               int64_t width = 2) {
  GridCase one;
  auto launches = std::make_unique<RoiAlignLaunches>();
  launches->options = options;
  one.launches = std::move(launches);
  one.name = std::string(options.takes_max ? "max" : "avg") + (options.half_pixel ? " half_pixel" : "") + " ratio " +
             std::to_string(options.sampling_ratio) + " of " + to_string(x->dtype) + x->shape.text();
  one.inputs = {x, rois, integers(batches)};
  const auto host = run_operator(
      testing::cpu_registry(),
      testing::call_of("RoiAlign", one.inputs,
                       {{"mode", std::string(options.takes_max ? "max" : "avg")},
                        {"coordinate_transformation_mode", std::string(options.half_pixel ? "half_pixel" : "output_half_pixel")},
                        {"output_height", height},
                        {"output_width", width},
                        {"sampling_ratio", options.sampling_ratio},
                        {"spatial_scale", options.spatial_scale}},
                       1));
  EXPECT_TRUE(host.ok()) << one.name << ": " << host.status().text();
  if (!host.ok()) return one;
  one.expected.push_back(conformance::numbers_of(*(*host)[0]));
  Number most = 0;
  for (const Number n : conformance::numbers_of(*x).values)
    if (std::isfinite(n)) most = std::max(most, std::fabs(n));
  one.expected[0].scale.assign(one.expected[0].values.size(), most);
  return one;
}

// Regions inside the map, across its borders, outside, of no extent and reversed.
Tensor regions(DType dtype) {
  return tensor_of(dtype, Shape{7, 4}, {1, 1, 5, 6, -3, -2, 4, 3, 6, 5, 14, 19, 30, 30, 40, 40, 3, 3, 3, 3, 6, 6, 1, 2, 0, 0, 8, 9});
}
const std::vector<int64_t> of_batches = {0, 1, 1, 0, 1, 0, 1};

TEST(RoiAlignSource, EveryDtypeAndMode) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const bool takes_max : {false, true})
      for (const bool half_pixel : {false, true})
        for (const int64_t ratio : {0, 1, 3})
          for (const double scale : {1.0, 0.3})
            cases.push_back(align(random_tensor(dtype, Shape{2, 3, 9, 8}, -4, 5, 1), regions(dtype), of_batches,
                                  options_of(takes_max, half_pixel, ratio, scale)));
  run_on_grid(std::move(cases));
}

TEST(RoiAlignSource, BinsOfOtherShapes) {
  std::vector<GridCase> cases;
  for (const auto& [height, width] : {std::pair<int64_t, int64_t>{1, 1}, {7, 5}, {1, 9}})
    for (const Shape& shape : {Shape{2, 1, 1, 1}, Shape{2, 2, 1, 7}, Shape{2, 2, 13, 2}, Shape{2, 2, 0, 3}})
      for (const bool takes_max : {false, true})
        cases.push_back(
            align(random_tensor(DType::f32, shape, -4, 5, 2), regions(DType::f32), of_batches, options_of(takes_max, true), height, width));
  run_on_grid(std::move(cases));
}

// More samples than floats can add one after the other without loss.
TEST(RoiAlignSource, ManySamples) {
  std::vector<GridCase> cases;
  const Tensor x = random_tensor(DType::f32, Shape{1, 1, 40, 40}, 1, 2, 3), rois = tensor_of(DType::f32, Shape{1, 4}, {0, 0, 39, 39});
  cases.push_back(align(x, rois, {0}, options_of(false, true, 300), 1, 1));
  cases.push_back(align(x, tensor_of(DType::f32, Shape{1, 4}, {-1e9L, 0, 1e9L, 3}), {0}, options_of(false, true), 1, 1));
  run_on_grid(std::move(cases));
}

TEST(RoiAlignSource, NaNAndInfinities) {
  const Number nan = std::nan(""), inf = HUGE_VAL;
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const bool takes_max : {false, true}) {
      const Tensor x = tensor_of(dtype, Shape{2, 1, 2, 4}, {1, nan, 2, inf, 3, 4, -inf, 5, nan, nan, 1, 2, 3, 4, 5, 6});
      cases.push_back(align(x, regions(dtype), of_batches, options_of(takes_max, true, 2)));
      cases.push_back(align(x, tensor_of(dtype, Shape{2, 4}, {nan, 0, 2, 3, 0, -inf, 1, inf}), {0, 1}, options_of(takes_max, false, 2)));
      cases.push_back(align(x, tensor_of(dtype, Shape{2, 4}, {nan, 0, 2, 3, 0, 0, inf, 1}), {0, 1}, options_of(takes_max, true, 0)));
    }
  run_on_grid(std::move(cases));
}

// The host refuses it.
TEST(RoiAlignSource, ABatchEntryThatThereIsNot) {
  const Tensor x = random_tensor(DType::f32, Shape{2, 3, 9, 8}, 1, 5, 4);
  std::vector<GridCase> cases;
  for (const int64_t outside : {int64_t{-1}, int64_t{2}, INT64_MAX}) {
    cases.push_back(align(x, regions(DType::f32), of_batches, options_of(false, true)));
    cases.back().inputs[2] = integers({0, 1, outside, 0, 1, 0, 1});
    Numbers& want = cases.back().expected[0];
    std::fill(want.values.begin() + 2 * 18, want.values.begin() + 3 * 18, Number{0});
  }
  run_on_grid(std::move(cases));
}

TEST(RoiAlignSource, NothingOfNothing) {
  std::vector<GridCase> cases;
  for (const bool varies : {false, true}) {
    cases.push_back(
        align(random_tensor(DType::f32, Shape{2, 3, 4, 4}, 1, 5, 5), tensor_of(DType::f32, Shape{0, 4}, {}), {}, options_of(false, true)));
    cases.back().varies = varies;
    cases.push_back(align(random_tensor(DType::f32, Shape{2, 3, 4, 4}, 1, 5, 5), regions(DType::f32), of_batches, options_of(false, true)));
    cases.back().varies = varies;
  }
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
