// GridSample, RoiAlign and NonMaxSuppression.
#include <algorithm>
#include <cmath>

#include "conformance/references/image/reference_sampling.h"
#include "conformance/references/reference_window.h"

namespace heddle::conformance {
namespace reference_image {
namespace {

// ---------------------------------------------------------------- GridSample

std::vector<Numbers> grid_sampled(const Call& call) {
  const Numbers &x = call[0], &grid = call[1];
  const Shape on = spatial(x.shape);
  const int rank = on.rank();
  Shape to;
  for (int d = 0; d < rank; ++d) to.push_back(grid.shape[d + 1]);
  Numbers y = zeros(x.dtype, with_spatial(x.shape[0], x.shape[1], to));
  y.scale = y.values;
  const int64_t outputs = to.element_count(), inputs = on.element_count();
  for (int64_t n = 0; n < x.shape[0]; ++n)
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
        Number weight = 1, of_positions = 0;
        int64_t from = 0;
        bool inside = true;
        for (int d = 0; d < rank; ++d) {
          const SampleTap& tap = taps[static_cast<size_t>(d)][static_cast<size_t>(at[static_cast<size_t>(d)])];
          inside = inside && tap.index >= 0;
          from = from * on[d] + tap.index;
          of_positions = of_positions * std::fabs(tap.weight) + std::fabs(weight) * tap.of_position;
          weight *= tap.weight;
        }
        for (int64_t c = 0; c < x.shape[1] && inside; ++c) {
          const int64_t channel = n * x.shape[1] + c;
          const Number value = x.values[static_cast<size_t>(channel * inputs + from)];
          y.values[static_cast<size_t>(channel * outputs + o)] += weight * value;
          y.scale[static_cast<size_t>(channel * outputs + o)] += (std::fabs(weight) + of_positions) * std::fabs(value);
        }
      }
    }
  return {y};
}

Row grid_sample() {
  std::vector<Case> cases = {{Kind::odd, "T[1,2,5,7], U[1,3,5,2] = -1.2..1.2"},
                             {Kind::odd, "f32[1,1,2,2], f32[1,1,5,2] = 0 0 -1 -1 1 1 -1 1 0.5 -0.5"},
                             {Kind::odd, "f32[2,17,9,8], f32[2,3,7,2] = -1.1..1.1"},
                             // Halfway between two elements it takes the even one.
                             {Kind::odd, "T[1,1,1,4], T[1,1,5,2] = -0.5 0 0 0 0.5 0 -1 0 1 0; mode=\"nearest\""},
                             {Kind::odd, "T[1,1,5,1], T[1,1,4,2] = 0 -0.75 0 -0.25 0 0.25 0 0.75; mode=\"nearest\", align_corners=1"},
                             {Kind::odd, "f32[1,1,2,2] = nan 1 2 inf, f32[1,1,3,2] = -0.5 -0.5 0.5 -0.5 -0.5 0.5; mode=\"nearest\""},
                             {Kind::empty, "T[0,2,5,7], T[0,3,5,2]"},
                             {Kind::empty, "T[2,0,5,7], T[2,3,5,2]"},
                             {Kind::empty, "T[1,2,5,7], T[1,0,5,2]"},
                             {Kind::rank, "T[1,2,3,4,5], T[1,3,2,3,3] = -1.3..1.3; mode=\"cubic\", padding_mode=\"reflection\""},
                             {Kind::large, "f32[2,3,61,57], f32[2,71,73,2] = -1.1..1.1; padding_mode=\"border\""},
                             {Kind::large, "f16[1,3,61,57], f16[1,71,73,2] = -1.1..1.1; mode=\"cubic\""},
                             {Kind::large, "f64[1,1,33,31], f64[1,331,53,2] = -1.1..1.1; mode=\"nearest\", padding_mode=\"reflection\""}};
  for (const char* mode : {"linear", "nearest", "cubic"})
    for (const char* padding : {"zeros", "border", "reflection"})
      for (const int align : {0, 1}) {
        const std::string attributes =
            std::string("; mode=\"") + mode + "\", padding_mode=\"" + padding + "\", align_corners=" + std::to_string(align);
        cases.push_back({Kind::odd, "T[2,3,5,7], T[2,3,5,2] = -1.4..1.4" + attributes});
        cases.push_back({Kind::odd, "f32[1,2,3,4], f32[1,9,5,2] = -4..4" + attributes});
        cases.push_back({Kind::odd, "f32[1,2,9], f32[1,17,1] = -1.4..1.4" + attributes});
        cases.push_back({Kind::odd, "f32[1,2,1,1], f32[1,3,5,2] = -2..2" + attributes});
        cases.push_back({Kind::rank, "f32[1,2,3,4,5], f32[1,3,2,3,3] = -1.4..1.4" + attributes});
      }
  return {.type = "GridSample",
          .reference = grid_sampled,
          .cases = std::move(cases),
          .ulps = 1,
          .without = {{Kind::broadcast, "X and grid have shapes of their own"}, {Kind::strided, "it takes whole tensors"}},
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}, {DType::f64, 2}}};
}

// ---------------------------------------------------------------- RoiAlign

// Returns the mean of the samples, or the largest of all weighted pixels: ONNX's reference defines "max" so, not as the largest sample.
Number pooled_bin(const Number* channel, const Call& call, const Points& down, const Points& across, Number* scale) {
  const int64_t height = call[0].shape[2], width = call[0].shape[3];
  const bool largest = call.s("mode", "avg") == "max";
  const auto count = std::max<Number>(static_cast<Number>(down.at.size() * across.at.size()), 1);
  std::vector<Number> terms;
  for (const Number y : down.at)
    for (const Number x : across.at) {
      const std::vector<Corner> corners = corners_of(y, x, height, width);
      if (corners.empty()) terms.push_back(0);
      for (const Corner& corner : corners) {
        const Number term = corner.weight * channel[corner.pixel];
        terms.push_back(term);
        const Number slope = of_position(call[0].dtype, std::fabs(y) + std::fabs(x), std::fabs(channel[corner.pixel]));
        *scale = largest ? std::max(*scale, std::fabs(term) + slope) : *scale + (std::fabs(term) + slope) / count;
      }
    }
  if (largest) return terms.empty() ? 0 : *std::max_element(terms.begin(), terms.end());
  Number sum = 0;
  for (const Number term : terms) sum += term;
  return sum / count;
}

std::vector<Numbers> roi_aligned(const Call& call) {
  const Numbers &x = call[0], &rois = call[1], &batches = call[2];
  const int64_t regions = rois.shape[0], channels = x.shape[1], size = x.shape[2] * x.shape[3];
  const int64_t height = call.i("output_height", 1), width = call.i("output_width", 1);
  Numbers y = zeros(x.dtype, {regions, channels, height, width});
  y.scale = y.values;
  size_t to = 0;
  for (int64_t r = 0; r < regions; ++r) {
    const Number* const roi = rois.values.data() + 4 * r;
    const std::vector<Points> down = points_of(call, roi[1], roi[3], height), across = points_of(call, roi[0], roi[2], width);
    for (int64_t c = 0; c < channels; ++c) {
      const auto batch = static_cast<int64_t>(batches.values[static_cast<size_t>(r)]);
      const Number* const channel = x.values.data() + (batch * channels + c) * size;
      for (int64_t i = 0; i < height; ++i)
        for (int64_t j = 0; j < width; ++j, ++to)
          y.values[to] = pooled_bin(channel, call, down[static_cast<size_t>(i)], across[static_cast<size_t>(j)], &y.scale[to]);
    }
  }
  return {y};
}

Row roi_align() {
  const std::string rois = " = 0 0 5 4 1.25 2.5 7.75 6 -2 -3 4 3 5 5 12 13 3 1 3.5 1.25";
  std::vector<Case> cases = {
      {Kind::odd, "f32[1,2,5,7], f32[2,4] = 1 1 4 3 0.5 0.25 6 5, i64[2] = 0"},
      {Kind::odd, "f32[2,17,9,8], f32[5,4]" + rois + ", i64[5] = 0 1 1 0 1; output_height=7, output_width=3, spatial_scale=0.75"},
      {Kind::odd, "T[1,2,1,7] = 1..2, T[2,4] = 1 0 4 1 0.5 0 6 0.75, i64[2] = 0; output_width=3"},
      {Kind::odd, "T[1,2,7,1] = 1..2, T[2,4] = 0 1 1 4 0 0.5 0.75 6, i64[2] = 0; output_height=3"},
      // A region of no extent covers one element if pixels are not shifted.
      {Kind::odd, "T[1,2,5,7], T[2,4] = 2 2 2 2 4 3 1 1, i64[2] = 0; coordinate_transformation_mode=\"output_half_pixel\", output_width=2"},
      {Kind::odd, "T[1,1,3,3], T[1,4] = 10 10 12 12, i64[1] = 0; sampling_ratio=2"},
      // Points less than an element outside count as the pixels at the border.
      {Kind::odd,
       "T[1,2,3,4] = 1..2, T[3,4] = 3 2 4 3 -1 -1 0 0 3 -1 4 0, i64[3] = 0; mode=\"max\", "
       "coordinate_transformation_mode=\"output_half_pixel\""},
      {Kind::empty, "T[1,2,5,7], T[0,4], i64[0]"},
      {Kind::empty, "T[1,0,5,7], T[1,4] = 1 1 3 3, i64[1] = 0"},
      {Kind::large, "f32[2,31,29,37], f32[5,4]" + rois + ", i64[5] = 0 1 1 0 1; output_height=17, output_width=19, sampling_ratio=2"},
      {Kind::large, "f16[1,67,29,37], f16[5,4]" + rois + ", i64[5] = 0; output_height=15, output_width=13"}};
  for (const char* mode : {"avg", "max"})
    for (const char* coordinates : {"half_pixel", "output_half_pixel"})
      for (const char* sampling : {"sampling_ratio=0", "sampling_ratio=1", "sampling_ratio=3", "sampling_ratio=0, spatial_scale=0.5"})
        cases.push_back({Kind::odd, "T[3,2,8,9], T[5,4]" + rois + ", i64[5] = 2 0 1 2 0; output_height=3, output_width=2, mode=\"" + mode +
                                        "\", coordinate_transformation_mode=\"" + coordinates + "\", " + sampling});
  return {.type = "RoiAlign",
          .reference = roi_aligned,
          .cases = std::move(cases),
          .ulps = 1,
          .without = {{Kind::broadcast, "all inputs have shapes of their own"},
                      {Kind::strided, "it takes whole tensors"},
                      {Kind::rank, "X has four dimensions"}},
          .ulps_of = {{DType::f16, rounded_once}, {DType::bf16, rounded_once}}};
}

// ---------------------------------------------------------------- NonMaxSuppression

struct Box {
  Number top, left, bottom, right;
  Number area() const { return (bottom - top) * (right - left); }
};

Box box_of(const Number* at, bool by_center) {
  if (by_center) return {at[1] - at[3] / 2, at[0] - at[2] / 2, at[1] + at[3] / 2, at[0] + at[2] / 2};
  return {std::min(at[0], at[2]), std::min(at[1], at[3]), std::max(at[0], at[2]), std::max(at[1], at[3])};
}

Number intersection_over_union(const Box& a, const Box& b) {
  const Number height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
               width = std::min(a.right, b.right) - std::max(a.left, b.left);
  if (height <= 0 || width <= 0) return 0;
  return height * width / (a.area() + b.area() - height * width);
}

// Returns the boxes of one class that are kept, best first.
Ints kept(const std::vector<Box>& boxes, const Number* scores, int64_t most, Number overlap, const std::optional<Numbers>& least) {
  Ints candidates;
  for (size_t i = 0; i < boxes.size(); ++i)
    if (!least || scores[i] > least->values[0]) candidates.push_back(static_cast<int64_t>(i));
  std::stable_sort(candidates.begin(), candidates.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
  Ints kept;
  for (const int64_t candidate : candidates) {
    if (static_cast<int64_t>(kept.size()) >= most) break;
    if (std::none_of(kept.begin(), kept.end(), [&](int64_t better) {
          return intersection_over_union(boxes[static_cast<size_t>(candidate)], boxes[static_cast<size_t>(better)]) > overlap;
        }))
      kept.push_back(candidate);
  }
  return kept;
}

std::vector<Numbers> suppressed(const Call& call) {
  const Numbers &boxes = call[0], &scores = call[1];
  const int64_t most = call.has(2) ? call.list(2)[0] : 0;
  const Number overlap = call.has(3) ? call[3].values[0] : 0;
  const std::optional<Numbers> least = call.has(4) ? std::optional(call[4]) : std::nullopt;
  std::vector<Number> rows;
  for (int64_t n = 0; n < scores.shape[0]; ++n) {
    std::vector<Box> of_image;
    for (int64_t i = 0; i < boxes.shape[1]; ++i)
      of_image.push_back(box_of(boxes.values.data() + (n * boxes.shape[1] + i) * 4, call.i("center_point_box", 0) != 0));
    for (int64_t c = 0; c < scores.shape[1]; ++c)
      for (const int64_t box : kept(of_image, scores.values.data() + (n * scores.shape[1] + c) * scores.shape[2], most, overlap, least))
        for (const int64_t index : {n, c, box}) rows.push_back(static_cast<Number>(index));
  }
  const auto count = static_cast<int64_t>(rows.size()) / 3;
  return {{DType::i64, {count, 3}, std::move(rows), {}}};
}

Row non_max_suppression() {
  return {.type = "NonMaxSuppression",
          .reference = suppressed,
          .cases = {{Kind::odd, "f32[2,17,4] = 0..1, f32[2,3,17], i64[1] = 5, f32[1] = 0.3, f32[1] = 0.1"},
                    {Kind::odd, "f32[2,17,4] = 0..1, f32[2,3,17], i64[] = 100, f32[] = 0.3, f32[] = 0.1"},
                    {Kind::odd, "f32[1,9,4] = 0..1, f32[1,1,9], i64[1] = 9"},
                    {Kind::odd, "f32[1,9,4] = 0..1, f32[1,1,9], i64[1] = 9, f32[1] = 1"},
                    {Kind::odd, "f32[1,9,4] = 0..1, f32[1,1,9], i64[1] = 9, -, f32[1] = 0"},
                    {Kind::odd, "f32[1,9,4] = 0..1, f32[1,2,9]"},
                    {Kind::odd, "f32[3,33,4] = 0.1..1, f32[3,2,33], i64[1] = 7, f32[1] = 0.25; center_point_box=1"},
                    // Ties of scores: the first box wins. An overlap equal to the threshold, and a score equal to the least. Boxes of no
                    // area.
                    {Kind::odd, "f32[1,5,4] = 0 0 1 1 0 0 1 1 0 2 1 3 5 5 6 6 0 0.1 1 1.1, f32[1,1,5] = 0.5, i64[1] = 5, f32[1] = 0.5"},
                    {Kind::odd, "f32[1,2,4] = 0 0 1 2 0 1 1 2, f32[1,1,2] = 0.5 0.25, i64[1] = 5, f32[1] = 0.5, f32[1] = 0.25"},
                    {Kind::odd, "f32[1,2,4] = 0 0 1 2 0 1 1 2, f32[1,1,2] = 0.5 0.25, i64[1] = 5, f32[1] = 0.5, f32[1] = 0"},
                    {Kind::odd, "f32[1,3,4] = 0 0 0 2 0 0 0 2 1 1 1 1, f32[1,1,3] = 0.5 0.25 1, i64[1] = 5, f32[1] = 0"},
                    // The corners of a box may be in either order.
                    {Kind::odd, "f32[1,3,4] = 1 1 0 0 0 1 1 0.25 2 3 1 2, f32[1,1,3] = 0.5 0.25 1, i64[1] = 5, f32[1] = 0.5"},
                    {Kind::empty, "f32[1,0,4], f32[1,2,0], i64[1] = 3, f32[1] = 0.5"},
                    {Kind::empty, "f32[0,5,4], f32[0,2,5], i64[1] = 3, f32[1] = 0.5"},
                    {Kind::empty, "f32[2,5,4], f32[2,0,5], i64[1] = 3, f32[1] = 0.5"},
                    {Kind::empty, "f32[1,5,4], f32[1,2,5], i64[1] = 0, f32[1] = 0.5"},
                    {Kind::large, "f32[3,801,4] = 0..1, f32[3,5,801], i64[1] = 40, f32[1] = 0.4, f32[1] = -0.5"},
                    {Kind::large, "f32[1,1501,4] = 0..0.2, f32[1,2,1501], i64[1] = 2000, f32[1] = 0.6; center_point_box=1"}},
          .without = {{Kind::broadcast, "all inputs have shapes of their own"},
                      {Kind::strided, "it takes whole tensors"},
                      {Kind::rank, "boxes and scores have three dimensions"}},
          .one_tile = true,
          .never_one_element = true};
}

}  // namespace
}  // namespace reference_image

std::vector<Row> image_rows() {
  using namespace reference_image;
  return {grid_sample(), roi_align(), non_max_suppression()};
}

}  // namespace heddle::conformance
