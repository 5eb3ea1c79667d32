// Resize: nearest, linear or cubic interpolation along any axes.
//
// One output row (all axes but the last resized one fixed) at a time: the input rows that it reads are combined with the weights of the
// outer axes into a buffer, then every output column is combined from the buffer. Tiles are ranges of rows.
#include <algorithm>
#include <type_traits>

#include "families.h"
#include "image/resize_plan.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "vector/convert.h"

namespace heddle::cpu {
namespace {

Status infer_resize(InferContext& context) {
  ResizeNode node;
  HEDDLE_PLUGIN_CHECK(parse_resize(context.attributes, &node));
  const Dims x = context.dims(0);
  const ResizeOperands operands = resize_operands(context.inputs(), context.input_count());
  for (const heddle_tensor* operand : {operands.scales, operands.sizes})
    if (operand && !operand->data) return context.set_dynamic(0, x.rank), Status();
  ResizeAxis axes[HEDDLE_MAX_RANK];
  HEDDLE_PLUGIN_CHECK(resolve_axes(node, x, operands, axes));
  Extents to;
  for (int i = 0; i < x.rank; ++i) to.push(axes[i].output);
  context.set_dims(0, to.dims());
  return {};
}

// The type of sums, as sums_in_f64() says.
template <class T>
using Sum = std::conditional_t<std::is_same_v<T, double> || std::is_integral_v<T>, double, float>;
template <class T>
constexpr bool sums_are_wide = std::is_same_v<Sum<T>, double>;
template <class T>
constexpr heddle_dtype sum_dtype = sums_are_wide<T> ? HEDDLE_F64 : HEDDLE_F32;

// A tile of an output of `dtype`, whose elements are T; bool is u8.
struct Interpolated {
  const ResizePlan& plan;
  heddle_dtype dtype;
  void *buffer, *sums;  // room for a row of the input, and for one of the output where the sums are of another type
  CancellationPoll& poll;
};

// Converts to integers as ONNX's reference does it (saturate_cast): to the nearest one, ties to the even one; values beyond the type's
// range give its limit. Weights add up to 1 only approximately: with truncation towards zero, a picture of 7s would contain 6s.
template <class T>
void from_sums(heddle_dtype dtype, Sum<T>* sums, T* y, int64_t count) {
  if constexpr (std::is_integral_v<T>) isa_resize_rows().round(sums, count);
  convert(sum_dtype<T>, sums, dtype, y, count);
}

template <class T>
void add_row(const Interpolated& tile, const T* x, int64_t count, Sum<T> weight) {
  auto* const sums = static_cast<Sum<T>*>(tile.buffer);
  const auto add = isa_resize_rows().add_row[sums_are_wide<T>];
  if constexpr (std::is_same_v<T, Sum<T>>) {
    add(sums, x, static_cast<double>(weight), count);
  } else {
    constexpr int64_t chunk = 256;
    Sum<T> converted[chunk];
    for (int64_t i = 0; i < count; i += chunk) {
      const int64_t n = std::min(chunk, count - i);
      convert(tile.dtype, x + i, sum_dtype<T>, converted, n);
      add(sums + i, converted, static_cast<double>(weight), n);
    }
  }
}

// Adds weight * (the input rows that output row `row` reads) to the buffer; false when the row lies outside a cropped input.
template <class T>
bool combine_rows(const Interpolated& tile, const T* x, const int64_t* at, int axis, Sum<T> weight) {
  const ResizePlan& plan = tile.plan;
  if (axis == plan.rank - 1) {
    const int64_t n = plan.column().input * plan.block;
    if (!tile.poll.stops(n)) add_row<T>(tile, x, n, weight);
    return true;
  }
  const ResizePlan::Axis& a = plan.axes[axis];
  if (a.taps == 0) return combine_rows(tile, x + at[axis] * a.stride, at, axis + 1, weight);
  for (int64_t t = 0; t < a.taps; ++t) {
    const int64_t entry = at[axis] * a.taps + t;
    if (a.positions[entry] < 0) return false;
    const auto w = static_cast<Sum<T>>(a.weights[entry]);
    if (w != 0 && !combine_rows(tile, x + a.positions[entry] * a.stride, at, axis + 1, weight * w)) return false;
  }
  return true;
}

template <class T>
void combine_columns(const Interpolated& tile, T outside, T* y) {
  const ResizePlan& plan = tile.plan;
  const ResizePlan::Axis& column = plan.column();
  const auto combine = isa_resize_rows().columns[sums_are_wide<T>];
  if constexpr (std::is_same_v<T, Sum<T>>) {
    combine(plan.columns, tile.buffer, y);
  } else {
    combine(plan.columns, tile.buffer, tile.sums);
    from_sums<T>(tile.dtype, static_cast<Sum<T>*>(tile.sums), y, column.output * plan.block);
  }
  for (int64_t o = 0; o < column.output && plan.crops; ++o)
    if (column.positions[o * column.taps] < 0) std::fill_n(y + o * plan.block, plan.block, outside);
}

// Computes the output position of a row on the axes before the column.
void row_position(const ResizePlan& plan, int64_t row, int64_t* at) {
  for (int i = plan.rank - 2; i >= 0; --i) {
    at[i] = row % plan.axes[i].output;
    row /= plan.axes[i].output;
  }
}

template <class T>
void interpolate(const Interpolated& tile, const T* x, T* y, T outside, Tiling::Range rows) {
  const ResizePlan& plan = tile.plan;
  const int64_t width = plan.column().output * plan.block, read = plan.column().input * plan.block;
  auto* const buffer = static_cast<Sum<T>*>(tile.buffer);
  for (int64_t row = rows.first; row < rows.last && !tile.poll.stops(4 * width); ++row) {
    int64_t at[HEDDLE_MAX_RANK];
    row_position(plan, row, at);
    std::fill(buffer, buffer + read, Sum<T>(0));
    T* const to = y + row * width;
    if (!combine_rows<T>(tile, x, at, 0, 1))
      std::fill(to, to + width, outside);
    else if (plan.column().taps > 0)
      combine_columns<T>(tile, outside, to);
    else
      from_sums<T>(tile.dtype, buffer, to, width);
  }
}

// Moves the elements of one row that the columns read from `from`.
template <class W>
void copy_columns(const ResizePlan& plan, const W* from, W outside, W* to) {
  const ResizePlan::Axis& column = plan.column();
  if (column.taps == 0) {
    std::copy(from, from + column.output * plan.block, to);
  } else if (plan.block == 1) {
    isa_resize_rows().picked[width_index(sizeof(W))](from, plan.columns.positions, to, column.output);
    for (int64_t o = 0; o < column.output && plan.crops; ++o)
      if (column.positions[o] < 0) to[o] = outside;
  } else {
    for (int64_t o = 0; o < column.output; ++o, to += plan.block) {
      const int64_t position = column.positions[o];
      if (position < 0)
        std::fill(to, to + plan.block, outside);
      else
        std::copy(from + position * plan.block, from + (position + 1) * plan.block, to);
    }
  }
}

// W: as wide as an element.
template <class W>
void copy_nearest(const ResizePlan& plan, const W* x, W* y, W outside, Tiling::Range rows, CancellationPoll& poll) {
  const int64_t width = plan.column().output * plan.block;
  const W* last = nullptr;  // what the row before was made from
  for (int64_t row = rows.first; row < rows.last && !poll.stops(width); ++row) {
    int64_t at[HEDDLE_MAX_RANK];
    row_position(plan, row, at);
    const W* from = x;
    bool inside = true;
    for (int i = 0; i + 1 < plan.rank; ++i) {
      const int64_t position = plan.axes[i].taps == 0 ? at[i] : plan.axes[i].positions[at[i]];
      inside = inside && position >= 0;
      from += position * plan.axes[i].stride;
    }
    W* to = y + row * width;
    if (!inside)
      std::fill(to, to + width, outside);
    else if (from == last)
      std::copy(to - width, to, to);
    else
      copy_columns(plan, from, outside, to);
    last = inside ? from : nullptr;
  }
}

class Resize {
 public:
  Status create(const CreateContext& context) { return parse_resize(context.attributes, &node_); }

  Status prepare(PrepareContext& context) {
    const heddle_tensor &x = *context.input(0), &y = *context.output(0);
    const uint32_t inputs = context.input_count();
    const bool nearest = node_.options.interpolation == Interpolation::nearest;
    table_bytes_ = (table_bytes(node_, dims_of(x), dims_of(y)) + 63) / 64 * 64;
    if (y.element_count > 0 && table_bytes_ > max_table_bytes)
      return invalid("an axis so long needs tables of " + std::to_string(table_bytes_) + " bytes, at most " +
                     std::to_string(max_table_bytes) + " are made; resize in several steps");
    fixed_ = true;
    for (uint32_t i = 1; i < inputs; ++i) fixed_ = fixed_ && context.is_constant(i);
    tables_.clear();
    if (fixed_ && y.element_count > 0) {
      tables_.resize(table_bytes_ / sizeof(double));
      HEDDLE_PLUGIN_CHECK(plan(context.inputs(), inputs, y, tables_.data(), &plan_));
    }
    buffer_bytes_ = nearest ? 0 : (row_elements(x, x, y) * sizeof(double) + 63) / 64 * 64;
    const uint64_t sums = nearest || x.dtype == HEDDLE_F32 || x.dtype == HEDDLE_F64 ? 0 : row_elements(y, x, y) * sizeof(double);
    context.set_scratch(0, buffer_bytes_ + sums + (fixed_ ? 0 : table_bytes_));
    tiling_.plan(context, static_cast<int64_t>(x.byte_size + y.byte_size), nearest ? 2.0 : 10.0);
    return {};
  }

  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    if (fixed_ && y.element_count == 0) return {};
    const bool no_scratch = fixed_ && node_.options.interpolation == Interpolation::nearest;
    char* scratch = no_scratch ? nullptr : thread_scratch<char>(context);
    ResizePlan late;
    if (!fixed_) {
      HEDDLE_PLUGIN_CHECK(plan(context.inputs, context.input_count, y, scratch, &late));
      scratch += table_bytes_;
      if (y.element_count == 0) return {};
    }
    const ResizePlan& p = fixed_ ? plan_ : late;
    if (p.is_copy) {
      const Tiling::Range units = tiling_.range(p.copy.units(), begin, end);
      p.copy.run(x.data, y.data, units.first, units.last);
      return {};
    }
    const Tiling::Range rows = tiling_.range(p.rows, begin, end);
    CancellationPoll poll(context);
    const double given = node_.options.extrapolation;
    const Interpolated tile = {p, x.dtype == HEDDLE_BOOL ? HEDDLE_U8 : x.dtype, scratch, scratch + buffer_bytes_, poll};
    with_dtype(x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      auto number = static_cast<Sum<T>>(x.dtype == HEDDLE_BOOL ? given != 0 : given);
      T outside;
      from_sums<T>(tile.dtype, &number, &outside, 1);
      if (node_.options.interpolation != Interpolation::nearest)
        interpolate(tile, static_cast<const T*>(x.data), static_cast<T*>(y.data), outside, rows);
      else
        copy_nearest(p, static_cast<const T*>(x.data), static_cast<T*>(y.data), outside, rows, poll);
    });
    return poll.status();
  }

  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  static constexpr uint64_t max_table_bytes = uint64_t{512} << 20;  // about a second's work

  // The largest number of elements of a row of x or y: the column is the innermost axis that changes its extent, or one further inside.
  static uint64_t row_elements(const heddle_tensor& of, const heddle_tensor& x, const heddle_tensor& y) {
    uint64_t elements = 1;
    for (int i = x.rank - 1; i >= 0; --i) {
      const int axis = x.layout.rank == x.rank ? x.layout.order[i] : i;
      elements *= static_cast<uint64_t>(of.dims[axis]);
      if (x.dims[axis] != y.dims[axis]) break;
    }
    return elements;
  }
  Status plan(const heddle_tensor* const* inputs, uint32_t count, const heddle_tensor& y, void* tables, ResizePlan* plan) const {
    const heddle_tensor& x = *inputs[0];
    const ResizeOperands operands = resize_operands(inputs, count);
    ResizeAxis axes[HEDDLE_MAX_RANK];
    const auto resolve = [&](Extents* to) -> Status {
      HEDDLE_PLUGIN_CHECK(resolve_axes(node_, dims_of(x), operands, axes));
      for (int i = 0; i < x.rank; ++i) to->push(axes[i].output);
      return {};
    };
    if (operands.sizes)
      HEDDLE_PLUGIN_CHECK(check_planned({{"sizes", operands.sizes}}, y, resolve));
    else
      HEDDLE_PLUGIN_CHECK(check_planned({{"scales", operands.scales}}, y, resolve));
    if (y.element_count == 0) return {};
    return make_resize_plan(node_, axes, x, tables, table_bytes_, plan);
  }

  ResizeNode node_;
  bool fixed_ = false;
  uint64_t table_bytes_ = 0, buffer_bytes_ = 0;
  std::vector<double> tables_;
  ResizePlan plan_;
  Tiling tiling_;
};

// Resize is not differentiated by the scales and the roi: it is no smooth function of them.
Status resize_gradient(GradientContext& g) {
  g.give(0, g.emit("ResizeGradient", {g.dy(0), shape_of(g, g.x(0)), g.x(1), g.x(2), g.x(3)},
                   {g.same("antialias"), g.same("axes"), g.same("coordinate_transformation_mode"), g.same("cubic_coeff_a"),
                    g.same("exclude_outside"), g.same("extrapolation_value"), g.same("keep_aspect_ratio_policy"), g.same("mode"),
                    g.same("nearest_mode")},
                   "heddle"));
  return {};
}

}  // namespace

void add_resize(Builder& plugin) {
  plugin.add(
      Op("Resize", "", 19)
          .doc("Interpolates to other extents, given by scales or by sizes, as `mode` says (nearest, linear, cubic), with or without "
               "antialiasing.")
          .shapes(
              "Y has on each of axes (without them on all) the size that sizes holds, or floor(extent of X times scale); with "
              "keep_aspect_ratio_policy not_larger or not_smaller, round(extent of X times the smallest, or the largest, of size / extent)")
          .in("X")
          .optional("roi", float_dtypes, nullptr)
          .not_differentiable()
          .shape_operand("scales", dtypes<float>(), true)
          .not_differentiable()
          .shape_operand("sizes", dtypes<int64_t>(), true)
          .out("Y")
          .attribute("antialias", 0)
          .maybe("axes", HEDDLE_ATTRIBUTE_INTS)
          .attribute("coordinate_transformation_mode", "half_pixel")
          .attribute("cubic_coeff_a", -0.75)
          .attribute("exclude_outside", 0)
          .attribute("extrapolation_value", 0.0)
          .attribute("keep_aspect_ratio_policy", "stretch")
          .attribute("mode", "nearest")
          .attribute("nearest_mode", "round_prefer_floor")
          .infer(infer_resize)
          .gradient<resize_gradient>()
          .cpu<Resize>()
          .example("f32[1,1,2,2] = 1 3 3 1, -, f32[4] = 1 1 2 2 -> f32[1,1,4,4] = 1 1 3 3 1 1 3 3 3 3 1 1 3 3 1 1", "ONNX Runtime")
          .example("f32[1,1,4] = 1 3 3 1, -, -, i64[3] = 1 1 7; mode=\"linear\", coordinate_transformation_mode=\"align_corners\" -> "
                   "f32[1,1,7] = 1 2 3 3 3 2 1",
                   "ONNX Runtime")
          .example("f32[1,1,5] = 1 3 3 1 5, -, -, i64[3] = 1 1 3; mode=\"linear\", coordinate_transformation_mode=\"asymmetric\" -> "
                   "f32[1,1,3] = 1 3 2.333333",
                   "ONNX Runtime")
          .example("f32[1,1,4] = 1 3 3 1, -, f32[3] = 1 1 2; mode=\"cubic\", cubic_coeff_a=-0.5, exclude_outside=1 -> f32[1,1,8] = "
                   "0.8235294 1.379562 2.557252 3.1875 3.1875 2.557252 1.379562 0.8235294",
                   "the ONNX reference")
          .example("f32[1,1,4] = 1 3 3 1, -, f32[3] = 1 1 1.5; nearest_mode=\"ceil\", coordinate_transformation_mode=\"asymmetric\" -> "
                   "f32[1,1,6] = 1 3 3 3 1 1",
                   "ONNX Runtime")
          .example("f32[1,1,6] = 1 3 3 1 5 7, -, f32[3] = 1 1 0.5; mode=\"linear\", antialias=1 -> f32[1,1,3] = 2 2.5 5.5", "ONNX Runtime")
          .example("f32[1,1,4] = 1 3 3 1, f32[6] = 0 0 0.25 1 1 1.25, -, i64[3] = 1 1 3; mode=\"linear\", "
                   "coordinate_transformation_mode=\"tf_crop_and_resize\", extrapolation_value=9.0 -> f32[1,1,3] = 2.5 2.5 9",
                   "ONNX Runtime")
          .example("f32[1,1,2,4] = 1 3 3 1 5 7 7 5, -, -, i64[2] = 3 4; axes=[2,3], keep_aspect_ratio_policy=\"not_larger\" -> "
                   "f32[1,1,2,4] = 1 3 3 1 5 7 7 5",
                   "ONNX Runtime")
          .example("f32[1,1,2] = 1 3, f16[6] = 0 0 0 1 1 1, f32[3] = 1 1 2 -> f32[1,1,4] = 1 1 3 3", "by hand")
          .example("f32[1,1,2] = 1 3, bf16[6] = 0 0 0 1 1 1, f32[3] = 1 1 2 -> f32[1,1,4] = 1 1 3 3", "by hand")
          .example("f32[1,1,2] = 1 3, f64[6] = 0 0 0 1 1 1, f32[3] = 1 1 2 -> f32[1,1,4] = 1 1 3 3", "by hand"));
}

}  // namespace heddle::cpu
