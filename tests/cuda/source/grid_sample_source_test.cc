// GridSample on the emulated grid, compared with the host's.
#include <gtest/gtest.h>

#include "cuda/lines.h"
#include "generate/image/grid_sample_launches.h"

namespace heddle::cuda::grid_test {
namespace {

using operators::GridOptions;
using operators::SampleInterpolation;
using operators::SamplePadding;

// Names in the order of the enumerations.
constexpr const char* modes[] = {"nearest", "linear", "cubic"};
constexpr const char* paddings[] = {"zeros", "border", "reflection"};

// The host adds in double, the kernel in float: the error is relative to the terms, whose weights add up to 1.375 along an axis at most,
// without their signs.
GridCase sample(const Tensor& x, const Tensor& grid, const GridOptions& options) {
  GridCase one;
  auto launches = std::make_unique<GridSampleLaunches>();
  launches->options = options;
  one.launches = std::move(launches);
  const std::string mode = modes[static_cast<size_t>(options.interpolation)], padding = paddings[static_cast<size_t>(options.padding)];
  one.name = mode + " " + padding + (options.align_corners ? " aligned" : "") + " of " + to_string(x->dtype) + x->shape.text() + " at " +
             to_string(grid->dtype) + grid->shape.text();
  one.inputs = {x, grid};
  const auto host =
      run_operator(testing::cpu_registry(),
                   testing::call_of("GridSample", one.inputs,
                                    {{"mode", mode}, {"padding_mode", padding}, {"align_corners", int64_t{options.align_corners}}}, 1));
  EXPECT_TRUE(host.ok()) << one.name << ": " << host.status().text();
  if (!host.ok()) return one;
  one.expected.push_back(conformance::numbers_of(*(*host)[0]));
  one.ulps = options.interpolation == SampleInterpolation::nearest ? 0 : 4;
  if (one.ulps == 0) return one;
  Number most = 0;
  for (const Number n : conformance::numbers_of(*x).values)
    if (std::isfinite(n)) most = std::max(most, std::fabs(n));
  if (options.interpolation == SampleInterpolation::cubic) most *= std::pow(Number{1.375}, x->shape.rank() - 2);
  one.expected[0].scale.assign(one.expected[0].values.size(), most);
  return one;
}

std::vector<GridOptions> every_option() {
  std::vector<GridOptions> all;
  for (const auto mode : {SampleInterpolation::nearest, SampleInterpolation::linear, SampleInterpolation::cubic})
    for (const auto padding : {SamplePadding::zeros, SamplePadding::border, SamplePadding::reflection})
      for (const bool aligned : {false, true}) all.push_back({mode, padding, aligned});
  return all;
}

TEST(GridSampleSource, EveryOptionAndRank) {
  std::vector<GridCase> cases;
  for (const GridOptions& options : every_option()) {
    cases.push_back(
        sample(random_tensor(DType::f32, Shape{2, 3, 7}, -4, 5, 1), random_tensor(DType::f32, Shape{2, 13, 1}, -2, 2, 2), options));
    cases.push_back(
        sample(random_tensor(DType::f32, Shape{2, 3, 5, 7}, -4, 5, 3), random_tensor(DType::f32, Shape{2, 4, 9, 2}, -2, 2, 4), options));
    cases.push_back(sample(random_tensor(DType::f32, Shape{1, 2, 3, 4, 5}, -4, 5, 5),
                           random_tensor(DType::f32, Shape{1, 3, 3, 5, 3}, -1.5, 1.5, 6), options));
    cases.push_back(
        sample(random_tensor(DType::f32, Shape{1, 2, 1, 2}, -4, 5, 7), random_tensor(DType::f32, Shape{1, 5, 5, 2}, -3, 3, 8), options));
  }
  run_on_grid(std::move(cases));
}

TEST(GridSampleSource, EveryDtype) {
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const DType of_grid : float_kinds)
      for (const GridOptions& options : every_option())
        if (options.padding == SamplePadding::zeros || dtype == of_grid)
          cases.push_back(sample(random_tensor(dtype, Shape{1, 2, 6, 5}, -4, 5, 9),
                                 random_tensor(of_grid, Shape{1, 3, 11, 2}, -1.3, 1.3, 10), options));
  run_on_grid(std::move(cases));
}

// On pixels, halfway between them and at the borders; and where there is nothing.
TEST(GridSampleSource, PlacesOnPixelsAndNowhere) {
  const Number nan = std::nan(""), inf = HUGE_VAL;
  std::vector<GridCase> cases;
  for (const DType dtype : {DType::f32, DType::f64})
    for (const GridOptions& options : every_option()) {
      Elements places;
      for (int i = -24; i <= 24; ++i) places.push_back(i / 8.0L);
      for (const Number far : {nan, inf, -inf, Number{1e30L}, Number{-1e30L}, Number{1e9L}}) places.push_back(far);
      const auto count = static_cast<int64_t>(places.size());
      cases.push_back(sample(random_tensor(dtype, Shape{1, 2, 4}, -4, 5, 11), tensor_of(dtype, Shape{1, count, 1}, places), options));
      cases.push_back(sample(random_tensor(dtype, Shape{1, 1, 5}, -4, 5, 12), tensor_of(dtype, Shape{1, count, 1}, places), options));
    }
  run_on_grid(std::move(cases));
}

// A thread does eight channels if there are enough threads without splitting them, else fewer.
TEST(GridSampleSource, ManyChannels) {
  std::vector<GridCase> cases;
  for (const int64_t channels : {7, 8, 9, 31})
    for (const int64_t positions : {3, 1 << 16}) {
      if (positions > 3 && channels > 9) continue;
      cases.push_back(sample(random_tensor(DType::f32, Shape{2, channels, 9}, -4, 5, 13),
                             random_tensor(DType::f32, Shape{2, positions, 1}, -1.2, 1.2, 14), {}));
    }
  run_on_grid(std::move(cases));
}

TEST(GridSampleSource, NaNAndInfinities) {
  const Number nan = std::nan(""), inf = HUGE_VAL;
  std::vector<GridCase> cases;
  for (const DType dtype : float_kinds)
    for (const GridOptions& options : every_option())
      cases.push_back(sample(tensor_of(dtype, Shape{1, 1, 6}, {1, inf, -inf, nan, 2, 3}),
                             tensor_of(DType::f32, Shape{1, 7, 1}, {-1, -0.6L, -0.3L, 0, 0.2L, 0.6L, 1}), options));
  run_on_grid(std::move(cases));
}

TEST(GridSampleSource, NothingOfNothing) {
  std::vector<GridCase> cases;
  for (const bool varies : {false, true})
    for (const Shape& shape : {Shape{0, 2, 3}, Shape{2, 0, 3}, Shape{2, 2, 3}}) {
      cases.push_back(sample(random_tensor(DType::f32, shape, 0, 1, 15),
                             random_tensor(DType::f32, Shape{shape[0], shape[1] == 2 ? 0 : 4, 1}, 0, 1, 16), {}));
      cases.back().varies = varies;
      cases.push_back(sample(random_tensor(DType::f32, Shape{2, 2, 3}, 0, 1, 15), random_tensor(DType::f32, Shape{2, 4, 1}, 0, 1, 16), {}));
      cases.back().varies = varies;
    }
  run_on_grid(std::move(cases));
}

}  // namespace
}  // namespace heddle::cuda::grid_test
