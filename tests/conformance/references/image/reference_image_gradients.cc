// The operators that make up the gradients of GridSample and RoiAlign.
#include <algorithm>
#include <cmath>

#include "conformance/cases/rounding.h"
#include "conformance/references/image/reference_sampling.h"
#include "conformance/references/reference_window.h"

namespace heddle::conformance {
namespace reference_image_gradients {
namespace {

// Sums with the magnitudes of their terms.
struct Sums {
  std::vector<Number> value, scale;
  std::vector<size_t> terms;

  explicit Sums(int64_t count)
      : value(static_cast<size_t>(count), 0), scale(static_cast<size_t>(count), 0), terms(static_cast<size_t>(count), 0) {}
  void add(int64_t at, Number term, Number error) {
    value[static_cast<size_t>(at)] += term;
    scale[static_cast<size_t>(at)] += error;
    ++terms[static_cast<size_t>(at)];
  }
  // Sums are added in f32, or in f64 if the dtype is f64.
  Numbers rounded_as(DType dtype, const Shape& shape) const {
    Numbers numbers = zeros(dtype, shape);
    numbers.values = value;
    numbers.scale = scale;
    for (size_t i = 0; i < terms.size(); ++i) numbers.scale[i] = once_rounded(dtype, numbers.scale[i] * walk(terms[i]));
    return numbers;
  }
};

Shape shape_in(const Call& call, size_t input) {
  Shape shape;
  for (const int64_t extent : call.list(input)) shape.push_back(extent);
  return shape;
}

// ---------------------------------------------------------------- GridSample

// Calls f(n, output position, offset into a channel, taps of all axes) for all taps inside.
template <class F>
void each_sample(const Call& call, const Numbers& grid, const Shape& x, F&& f) {
  const Shape on = spatial(x);
  const int rank = on.rank();
  int64_t outputs = 1;
  for (int d = 0; d < rank; ++d) outputs *= grid.shape[d + 1];
  for (int64_t n = 0; n < x[0]; ++n)
    for (int64_t o = 0; o < outputs; ++o) {
      // The grid gives the last axis first.
      std::vector<std::vector<SampleTap>> taps;
      Shape counts;
      for (int d = 0; d < rank; ++d) {
        taps.push_back(taps_at(call, grid.values[static_cast<size_t>((n * outputs + o) * rank + rank - 1 - d)], on[d]));
        counts.push_back(static_cast<int64_t>(taps.back().size()));
      }
      for (int64_t i = 0; i < counts.element_count(); ++i) {
        const Ints at = position_of(i, counts);
        std::vector<SampleTap> chosen;
        int64_t offset = 0;
        bool inside = true;
        for (int d = 0; d < rank; ++d) {
          chosen.push_back(taps[static_cast<size_t>(d)][static_cast<size_t>(at[static_cast<size_t>(d)])]);
          inside = inside && chosen.back().index >= 0;
          offset = offset * on[d] + chosen.back().index;
        }
        if (inside) f(n, o, outputs, offset, chosen);
      }
    }
}

std::vector<Numbers> input_gradient(const Call& call) {
  const Numbers &dy = call[0], &grid = call[2];
  const Shape shape = shape_in(call, 1);
  const int64_t channels = shape[1], inputs = spatial(shape).element_count();
  Sums sums(shape.element_count());
  each_sample(call, grid, shape, [&](int64_t n, int64_t o, int64_t outputs, int64_t offset, const std::vector<SampleTap>& taps) {
    Number weight = 1, of_positions = 0;
    for (const SampleTap& tap : taps) {
      of_positions = of_positions * std::fabs(tap.weight) + std::fabs(weight) * tap.of_position;
      weight *= tap.weight;
    }
    for (int64_t c = n * channels; c < (n + 1) * channels; ++c) {
      const Number value = dy.values[static_cast<size_t>(c * outputs + o)];
      if (weight != 0) sums.add(c * inputs + offset, weight * value, (std::fabs(weight) + of_positions) * std::fabs(value));
    }
  });
  return {sums.rounded_as(dy.dtype, shape)};
}

// Computed in f64 whatever the dtypes are.
std::vector<Numbers> grid_gradient(const Call& call) {
  const Numbers &dy = call[0], &x = call[1], &grid = call[2];
  const int64_t channels = x.shape[1], inputs = spatial(x.shape).element_count();
  const bool wide = grid.dtype == DType::f64;
  // Where positions are rounded like the result, weights are off by the rounding of a position as large as the largest extent.
  const Shape on = spatial(x.shape);
  const auto of_positions = static_cast<Number>(on.rank() == 0 ? 0 : 2 * *std::max_element(on.begin(), on.end()));
  Numbers changes = zeros(grid.dtype, grid.shape);
  changes.scale = changes.values;
  each_sample(call, grid, x.shape, [&](int64_t n, int64_t o, int64_t outputs, int64_t offset, const std::vector<SampleTap>& taps) {
    Number sum = 0, magnitude = 0;
    for (int64_t c = n * channels; c < (n + 1) * channels; ++c) {
      const Number term = dy.values[static_cast<size_t>(c * outputs + o)] * x.values[static_cast<size_t>(c * inputs + offset)];
      sum += term;
      magnitude += std::fabs(term);
    }
    for (size_t d = 0; d < taps.size(); ++d) {
      Number weight = taps[d].slope, error = std::fabs(taps[d].slope) * (1 + of_positions);
      for (size_t other = 0; other < taps.size(); ++other)
        if (other != d) weight *= taps[other].weight, error *= std::fabs(taps[other].weight) + of_positions;
      const auto at =
          static_cast<size_t>((n * outputs + o) * static_cast<int64_t>(taps.size()) + static_cast<int64_t>(taps.size() - 1 - d));
      changes.values[at] += weight * sum;
      changes.scale[at] += (wide ? error : std::fabs(weight)) * magnitude;
    }
  });
  return {changes};
}

void add_modes(std::vector<Case>& cases, const char* by_mode, const char* of_volume, const char* of_line) {
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const int align : {0, 1}) {
        const std::string attributes =
            std::string("; mode=\"") + mode + "\", padding_mode=\"" + padding + "\", align_corners=" + std::to_string(align);
        cases.push_back({Kind::odd, by_mode + attributes});
        cases.push_back({Kind::odd, of_line + attributes});
        cases.push_back({Kind::rank, of_volume + attributes});
      }
}

const std::map<Kind, std::string> of_samples = {{Kind::broadcast, "all inputs have shapes of their own"},
                                                {Kind::strided, "it takes whole tensors"}};

Row grid_sample_input_gradient() {
  std::vector<Case> cases = {
      {Kind::odd, "f32[2,17,3,7], i64[4] = 2 17 9 8, f32[2,3,7,2] = -1.1..1.1"},
      {Kind::odd, "T[1,1,1,1], i64[4] = 1 1 1 1, U[1,1,1,2] = 0"},
      {Kind::odd, "T[1,2,5,7], i64[4] = 1 2 5 7, T[1,5,7,2] = -1.2..1.2"},
      {Kind::odd, "f32[1,1,1,3] = nan 1 inf, i64[4] = 1 1 2 2, f32[1,1,3,2] = -0.5 -0.5 0.5 -0.5 -0.5 0.5; mode=\"nearest\""},
      {Kind::empty, "T[0,2,3,5], i64[4] = 0 2 5 7, T[0,3,5,2]"},
      {Kind::empty, "T[2,0,3,5], i64[4] = 2 0 5 7, T[2,3,5,2]"},
      {Kind::empty, "T[1,2,0,5], i64[4] = 1 2 5 7, T[1,0,5,2]"},
      {Kind::large, "f32[2,3,71,73], i64[4] = 2 3 61 57, f32[2,71,73,2] = -1.1..1.1; padding_mode=\"border\""},
      {Kind::large, "f16[1,19,71,73], i64[4] = 1 19 61 57, f16[1,71,73,2] = -1.1..1.1; mode=\"cubic\""},
      {Kind::large, "f64[1,9,331,53], i64[4] = 1 9 33 31, f64[1,331,53,2] = -1.1..1.1; mode=\"nearest\""}};
  add_modes(cases, "T[2,3,3,5], i64[4] = 2 3 5 7, U[2,3,5,2] = -1.4..1.4", "f32[1,2,3,2,3], i64[5] = 1 2 3 4 5, f32[1,3,2,3,3] = -1.4..1.4",
            "f32[1,2,17], i64[3] = 1 2 9, f32[1,17,1] = -1.4..1.4");
  return {.type = "GridSampleInputGradient",
          .reference = input_gradient,
          .cases = std::move(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = of_samples,
          .ulps_of = {{DType::f64, 2}}};
}

// Along axes of 5, 7 and 9 elements no position outside is a whole number, where slopes on both sides differ.
Row grid_sample_grid_gradient() {
  std::vector<Case> cases = {{Kind::odd, "f32[2,17,3,7], f32[2,17,9,7], f32[2,3,7,2] = -1.1..1.1"},
                             {Kind::odd, "T[1,1,1], T[1,1,1], U[1,1,1] = 0.5"},
                             {Kind::odd, "T[1,2,3,5], T[1,2,5,7], T[1,3,5,2] = -1..1"},
                             {Kind::empty, "T[0,2,3,5], T[0,2,5,7], U[0,3,5,2]"},
                             {Kind::empty, "T[2,0,3,5], T[2,0,5,7], U[2,3,5,2] = -1..1"},
                             {Kind::empty, "T[1,2,0,5], T[1,2,5,7], U[1,0,5,2]"},
                             {Kind::large, "f32[2,3,171,173], f32[2,3,61,57], f32[2,171,173,2] = -1.1..1.1; padding_mode=\"border\""},
                             {Kind::large, "f16[1,3,171,173], f16[1,3,61,57], f32[1,171,173,2] = -1.1..1.1; mode=\"cubic\""},
                             {Kind::large, "f64[1,1,331,153], f64[1,1,33,31], f64[1,331,153,2] = -1.1..1.1; padding_mode=\"reflection\""}};
  add_modes(cases, "T[2,3,3,5], T[2,3,5,7], U[2,3,5,2] = -1.35..1.35", "f32[1,2,3,2,3], f32[1,2,5,7,9], f32[1,3,2,3,3] = -1.15..1.15",
            "f64[1,2,17], f64[1,2,9], f64[1,17,1] = -1.15..1.15");
  return {.type = "GridSampleGridGradient",
          .reference = grid_gradient,
          .cases = std::move(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = of_samples};
}

// ---------------------------------------------------------------- RoiAlign

std::vector<Numbers> roi_align_gradient(const Call& call) {
  const Numbers &dy = call[0], &rois = call[2], &batches = call[3];
  const Shape shape = shape_in(call, 1);
  const int64_t channels = shape[1], height = shape[2], width = shape[3], down = dy.shape[2], across = dy.shape[3];
  const bool largest = call.s("mode", "avg") == "max";
  Sums sums(shape.element_count());
  for (int64_t r = 0; r < rois.shape[0]; ++r) {
    const Number* const roi = rois.values.data() + 4 * r;
    const std::vector<Points> rows = points_of(call, roi[1], roi[3], down), columns = points_of(call, roi[0], roi[2], across);
    for (int64_t c = 0; c < channels; ++c) {
      const int64_t map = (static_cast<int64_t>(batches.values[static_cast<size_t>(r)]) * channels + c) * height * width;
      for (int64_t bin = 0; bin < down * across; ++bin) {
        const Number value = dy.values[static_cast<size_t>((r * channels + c) * down * across + bin)];
        const Points &y = rows[static_cast<size_t>(bin / across)], &x = columns[static_cast<size_t>(bin % across)];
        const auto count = static_cast<Number>(y.at.size() * x.at.size());
        std::optional<std::pair<Number, Corner>> most;
        for (const Number v : y.at)
          for (const Number u : x.at) {
            std::vector<Corner> corners = corners_of(v, u, height, width);
            if (corners.empty()) corners.push_back({-1, 0});
            const Number slope = of_position(dy.dtype, std::fabs(v) + std::fabs(u), std::fabs(value));
            for (const Corner& corner : corners) {
              const Number weighted =
                  largest && corner.pixel >= 0 ? corner.weight * call[4].values[static_cast<size_t>(map + corner.pixel)] : 0;
              if (largest && (!most || weighted > most->first)) most = {weighted, corner};
              if (!largest && corner.pixel >= 0)
                sums.add(map + corner.pixel, value * corner.weight / count, (std::fabs(value) * corner.weight + slope) / count);
            }
          }
        if (most && most->second.pixel >= 0)
          sums.add(map + most->second.pixel, value * most->second.weight,
                   std::fabs(value) * most->second.weight + of_position(dy.dtype, static_cast<Number>(height + width), std::fabs(value)));
      }
    }
  }
  return {sums.rounded_as(dy.dtype, shape)};
}

Row roi_align_gradient_row() {
  const std::string rois = " = 0 0 5 4 1.25 2.5 7.75 6 -2 -3 4 3 5 5 12 13 3 1 3.5 1.25";
  std::vector<Case> cases = {
      {Kind::odd, "f32[2,2,1,1], i64[4] = 1 2 5 7, f32[2,4] = 1 1 4 3 0.5 0.25 6 5, i64[2] = 0"},
      {Kind::odd, "T[1,1,1,1], i64[4] = 1 1 1 1, T[1,4] = 0 0 1 1, i64[1] = 0; sampling_ratio=1"},
      {Kind::odd, "T[1,1,3,3], i64[4] = 1 1 3 3, T[1,4] = 0 0 3 3, i64[1] = 0; sampling_ratio=1"},
      {Kind::odd, "f32[5,17,7,3], i64[4] = 2 17 9 8, f32[5,4]" + rois + ", i64[5] = 0 1 1 0 1; spatial_scale=0.75"},
      {Kind::odd, "T[2,2,1,3], i64[4] = 1 2 1 7, T[2,4] = 1 0 4 1 0.5 0 6 0.75, i64[2] = 0"},
      {Kind::odd,
       "T[2,2,1,2], i64[4] = 1 2 5 7, T[2,4] = 2 2 2 2 4 3 1 1, i64[2] = 0; coordinate_transformation_mode=\"output_half_pixel\""},
      {Kind::odd, "T[1,1,1,1], i64[4] = 1 1 3 3, T[1,4] = 10 10 12 12, i64[1] = 0; sampling_ratio=2"},
      {Kind::empty, "T[0,2,1,1], i64[4] = 1 2 5 7, T[0,4], i64[0]"},
      {Kind::empty, "T[1,0,1,1], i64[4] = 1 0 5 7, T[1,4] = 1 1 3 3, i64[1] = 0"},
      {Kind::large, "f32[5,31,17,19], i64[4] = 2 31 29 37, f32[5,4]" + rois + ", i64[5] = 0 1 1 0 1; sampling_ratio=2"},
      {Kind::large, "f16[5,67,15,13], i64[4] = 1 67 29 37, f16[5,4]" + rois + ", i64[5] = 0"}};
  for (const char* mode : {"avg", "max"})
    for (const char* coordinates : {"half_pixel", "output_half_pixel"})
      for (const char* sampling : {"sampling_ratio=0", "sampling_ratio=1", "sampling_ratio=3", "sampling_ratio=0, spatial_scale=0.5"})
        cases.push_back({Kind::odd, "T[5,2,3,2], i64[4] = 3 2 8 9, T[5,4]" + rois + ", i64[5] = 2 0 1 2 0, T[3,2,8,9]; mode=\"" + mode +
                                        "\", coordinate_transformation_mode=\"" + coordinates + "\", " + sampling});
  return {.type = "RoiAlignGradient",
          .reference = roi_align_gradient,
          .cases = std::move(cases),
          .ulps = 1,
          .domain = "heddle",
          .without = {{Kind::broadcast, "all inputs have shapes of their own"},
                      {Kind::strided, "it takes whole tensors"},
                      {Kind::rank, "X has four dimensions"}}};
}

}  // namespace
}  // namespace reference_image_gradients

std::vector<Row> image_gradient_rows() {
  using namespace reference_image_gradients;
  return {grid_sample_input_gradient(), grid_sample_grid_gradient(), roi_align_gradient_row()};
}

}  // namespace heddle::conformance
