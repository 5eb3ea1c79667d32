// heddle::ResizeGradient: adds dY to the elements that Resize read, with the weights that it read them with. The gradient of Resize.
//
// It inverts the tables of Resize (resize_plan.h): they list for every position of the input the positions of the output that read it. One
// output row at a time, as there: the rows of dY that read it are added up in a buffer, then every column from the buffer. Tiles are ranges
// of rows.
#include <algorithm>
#include <numeric>

#include "families.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/image/resize_node.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t resize_shape_port = 1, resize_roi_port = 2, resize_scales_port = 3, resize_sizes_port = 4;

// The operands in the order in which Resize has them.
ResizeOperands operands_of(const heddle_tensor* const* inputs, uint32_t count) {
  const auto at = [&](uint32_t port) { return port < count ? inputs[port] : nullptr; };
  const heddle_tensor* const of_resize[] = {nullptr, at(resize_roi_port), at(resize_scales_port), at(resize_sizes_port)};
  return resize_operands(of_resize, 4);
}

// Errors: Resize of `x` does not give dY's extents.
Status check_resized(const ResizeNode& node, Dims dy, Dims x, const ResizeOperands& operands, ResizeAxis* axes) {
  HEDDLE_PLUGIN_CHECK(resolve_axes(node, x, operands, axes));
  Extents to;
  for (int i = 0; i < x.rank; ++i) to.push(axes[i].output);
  if (!std::equal(dy.begin(), dy.end(), to.dims().begin(), to.dims().end()))
    return invalid("dY has shape " + dims_text(dy) + ", the resized tensor " + dims_text(to.dims()));
  return {};
}

Status infer_resize_gradient(InferContext& context) {
  ResizeNode node;
  HEDDLE_PLUGIN_CHECK(parse_resize(context.attributes, &node));
  const Dims dy = context.dims(0);
  if (context.dims(resize_shape_port).rank != 1 || context.dims(resize_shape_port)[0] != dy.rank)
    return invalid("shape has shape " + dims_text(context.dims(resize_shape_port)) + ", expected [" + std::to_string(dy.rank) + "]");
  if (!context.known(resize_shape_port)) return context.set_dynamic(0, dy.rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(resize_shape_port), &to));
  const ResizeOperands operands = operands_of(context.inputs(), context.input_count());
  ResizeAxis axes[HEDDLE_MAX_RANK];
  if ((!operands.scales || operands.scales->data) && (!operands.sizes || operands.sizes->data))
    HEDDLE_PLUGIN_CHECK(check_resized(node, dy, to.dims(), operands, axes));
  context.set_dims(0, to.dims());
  return {};
}

// Axes outermost first; trailing ones that keep their elements are one block. The axis before is the column.
struct ReadersPlan {
  struct Axis {
    int64_t read = 1, readers = 1, stride = 1;  // extents of the output and of dY; the stride is dY's, in elements
    const int32_t* first = nullptr;             // [read + 1] places in the lists below; null: position i is read by position i
    const int32_t* positions = nullptr;
    const double* weights = nullptr;
  };
  Axis axes[HEDDLE_MAX_RANK];
  int rank = 0;
  int64_t block = 1, rows = 1;
  const Axis& column() const { return axes[rank - 1]; }
};

// The memory of the tables of all axes: those of Resize, which are only needed to invert them, and the inverted ones.
struct Tables {
  double *taken, *weights;
  int32_t *taken_positions, *positions, *first;
  static uint64_t bytes(const ResizeNode& node, Dims x, Dims dy) {
    const auto entries = static_cast<uint64_t>(table_entries(node, x, dy));
    uint64_t places = 0;
    for (int i = 0; i < x.rank; ++i) places += static_cast<uint64_t>(x[i]) + 1;
    return (entries * 2 * (sizeof(double) + sizeof(int32_t)) + places * sizeof(int32_t) + 63) / 64 * 64;
  }
  Tables(void* memory, int64_t entries)
      : taken(static_cast<double*>(memory)),
        weights(taken + entries),
        taken_positions(reinterpret_cast<int32_t*>(weights + entries)),
        positions(taken_positions + entries),
        first(positions + entries) {}
};

// Sorts the entries of dY's positions by the input position that they read; the entries of one position keep their order.
void turn_round(const ResizeAxis& axis, int64_t taps, const Tables& tables) {
  const int64_t entries = axis.output * taps;
  const auto is_read = [&](int64_t e) { return tables.taken_positions[e] >= 0 && tables.taken[e] != 0; };
  std::fill_n(tables.first, axis.input + 1, 0);
  for (int64_t e = 0; e < entries; ++e)
    if (is_read(e)) ++tables.first[tables.taken_positions[e]];
  // Each place is where its list ends, then, filled from its end to its begin, where it begins.
  std::partial_sum(tables.first, tables.first + axis.input + 1, tables.first);
  for (int64_t e = entries; e-- > 0;) {
    if (!is_read(e)) continue;
    const int32_t place = --tables.first[tables.taken_positions[e]];
    tables.positions[place] = static_cast<int32_t>(e / taps);
    tables.weights[place] = tables.taken[e];
  }
}

Status make_plan(const ResizeNode& node, const ResizeAxis* axes, int rank, void* memory, int64_t entries, ReadersPlan* made) {
  ReadersPlan& plan = *made = {};
  const bool crops = node.options.coordinates == Coordinates::tf_crop_and_resize;
  Tables tables(memory, entries);
  int64_t used = 0;
  for (int i = 0; i < rank; ++i) {
    const ResizeAxis& axis = axes[i];
    plan.axes[i] = {axis.input, axis.output, 1, nullptr, nullptr, nullptr};
    if (axis.scale == 1 && axis.input == axis.output && !(crops && (axis.start != 0 || axis.end != 1))) continue;
    const int64_t taps = tap_count(node.options, axis);
    used += axis.output * taps;
    if (used > entries) return invalid("the scales need a kernel wider than the extents of dY told: " + std::to_string(used) + " weights");
    fill_taps(node.options, axis, taps, tables.taken_positions, tables.taken);
    turn_round(axis, taps, tables);
    plan.axes[i].first = tables.first;
    plan.axes[i].positions = tables.positions;
    plan.axes[i].weights = tables.weights;
    tables.first += axis.input + 1;
    tables.positions += axis.output * taps;
    tables.weights += axis.output * taps;
  }
  plan.rank = rank;
  while (plan.rank > 1 && !plan.axes[plan.rank - 1].first) plan.block *= plan.axes[--plan.rank].read;
  plan.rank = std::max(plan.rank, 1);
  int64_t stride = plan.block;
  for (int i = plan.rank - 1; i >= 0; --i) {
    plan.axes[i].stride = stride;
    stride *= plan.axes[i].readers;
    if (i + 1 < plan.rank) plan.rows *= plan.axes[i].read;
  }
  return {};
}

// Adds to `buffer` the rows of dY that read the row `at`, with their weights.
template <class T>
void add_rows(const ReadersPlan& plan, const T* dy, const int64_t* at, int axis, FloatSum<T> weight, FloatSum<T>* buffer,
              CancellationPoll& poll) {
  const ReadersPlan::Axis& a = plan.axes[axis];
  if (axis == plan.rank - 1) {
    const int64_t n = a.readers * plan.block;
    if (poll.stops(n)) return;
    for (int64_t i = 0; i < n; ++i) buffer[i] += weight * static_cast<FloatSum<T>>(to_arithmetic(dy[i]));
    return;
  }
  if (!a.first) return add_rows<T>(plan, dy + at[axis] * a.stride, at, axis + 1, weight, buffer, poll);
  for (int32_t e = a.first[at[axis]]; e < a.first[at[axis] + 1]; ++e)
    add_rows<T>(plan, dy + a.positions[e] * a.stride, at, axis + 1, weight * static_cast<FloatSum<T>>(a.weights[e]), buffer, poll);
}

template <class T>
void add_columns(const ReadersPlan& plan, const FloatSum<T>* buffer, T* dx) {
  const ReadersPlan::Axis& column = plan.column();
  for (int64_t i = 0; i < column.read; ++i)
    for (int64_t b = 0; b < plan.block; ++b) {
      FloatSum<T> sum = 0;
      if (!column.first)
        sum = buffer[i * plan.block + b];
      else
        for (int32_t e = column.first[i]; e < column.first[i + 1]; ++e)
          sum += static_cast<FloatSum<T>>(column.weights[e]) * buffer[column.positions[e] * plan.block + b];
      dx[i * plan.block + b] = from_arithmetic<T>(sum);
    }
}

template <class T>
void add_up(const ReadersPlan& plan, const T* dy, T* dx, FloatSum<T>* buffer, Tiling::Range rows, CancellationPoll& poll) {
  const int64_t width = plan.column().read * plan.block, read = plan.column().readers * plan.block;
  for (int64_t row = rows.first; row < rows.last && !poll.stops(4 * (width + read)); ++row) {
    int64_t at[HEDDLE_MAX_RANK], rest = row;
    for (int i = plan.rank - 2; i >= 0; --i) {
      at[i] = rest % plan.axes[i].read;
      rest /= plan.axes[i].read;
    }
    std::fill_n(buffer, read, FloatSum<T>(0));
    add_rows<T>(plan, dy, at, 0, 1, buffer, poll);
    add_columns<T>(plan, buffer, dx + row * width);
  }
}

class ResizeGradient {
 public:
  Status create(const CreateContext& context) { return parse_resize(context.attributes, &node_); }
  Status prepare(PrepareContext& context) {
    const heddle_tensor &dy = *context.input(0), &dx = *context.output(0);
    entries_ = table_entries(node_, dims_of(dx), dims_of(dy));
    table_bytes_ = Tables::bytes(node_, dims_of(dx), dims_of(dy));
    if (dx.element_count > 0 && table_bytes_ > max_table_bytes)
      return invalid("an axis so long needs tables of " + std::to_string(table_bytes_) + " bytes, at most " +
                     std::to_string(max_table_bytes) + " are made");
    fixed_ = true;
    for (uint32_t i = 1; i < context.input_count(); ++i) fixed_ = fixed_ && context.is_constant(i);
    tables_.clear();
    if (fixed_ && dx.element_count > 0) {
      tables_.resize(table_bytes_ / sizeof(double));
      HEDDLE_PLUGIN_CHECK(plan(context.inputs(), context.input_count(), dx, tables_.data(), &plan_));
    }
    context.set_scratch(0, buffer_elements(dx, dy) * sizeof(double) + (fixed_ ? 0 : table_bytes_));
    tiling_.plan(context, static_cast<int64_t>(dx.byte_size + dy.byte_size), 10.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &dy = *context.inputs[0], &dx = *context.outputs[0];
    if (fixed_ && dx.element_count == 0) return {};
    char* scratch = thread_scratch<char>(context);
    ReadersPlan late;
    if (!fixed_) {
      HEDDLE_PLUGIN_CHECK(plan(context.inputs, context.input_count, dx, scratch, &late));
      scratch += table_bytes_;
      if (dx.element_count == 0) return {};
    }
    const ReadersPlan& p = fixed_ ? plan_ : late;
    const Tiling::Range rows = tiling_.range(p.rows, begin, end);
    CancellationPoll poll(context);
    with_float(dx.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      add_up(p, static_cast<const T*>(dy.data), static_cast<T*>(dx.data), reinterpret_cast<FloatSum<T>*>(scratch), rows, poll);
    });
    return poll.status();
  }

 private:
  static constexpr uint64_t max_table_bytes = uint64_t{1} << 30;

  // The largest number of elements of a row of dY: the column is the innermost axis that changes its extent, or one further inside.
  static uint64_t buffer_elements(const heddle_tensor& dx, const heddle_tensor& dy) {
    uint64_t elements = 1;
    for (int i = dx.rank - 1; i >= 0; --i) {
      elements *= static_cast<uint64_t>(dy.dims[i]);
      if (dx.dims[i] != dy.dims[i]) break;
    }
    return elements;
  }
  Status plan(const heddle_tensor* const* inputs, uint32_t count, const heddle_tensor& dx, void* tables, ReadersPlan* plan) const {
    HEDDLE_PLUGIN_CHECK(check_planned({{"shape", inputs[resize_shape_port]}}, dx,
                                      [&](Extents* to) { return constant_extents(*inputs[resize_shape_port], to); }));
    ResizeAxis axes[HEDDLE_MAX_RANK];
    HEDDLE_PLUGIN_CHECK(check_resized(node_, dims_of(*inputs[0]), dims_of(dx), operands_of(inputs, count), axes));
    if (dx.element_count == 0) return {};
    return make_plan(node_, axes, dx.rank, tables, entries_, plan);
  }

  ResizeNode node_;
  bool fixed_ = false;
  int64_t entries_ = 0;
  uint64_t table_bytes_ = 0;
  std::vector<double> tables_;
  ReadersPlan plan_;
  Tiling tiling_;
};

// Nothing was read outside of a cropped input, so extrapolation_value is left out.
Status resize_gradient_gradient(GradientContext& g) {
  g.give(0, g.emit("Resize", {g.dy(0), g.x(resize_roi_port), g.x(resize_scales_port), g.x(resize_sizes_port)},
                   {g.same("antialias"), g.same("axes"), g.same("coordinate_transformation_mode"), g.same("cubic_coeff_a"),
                    g.same("exclude_outside"), g.same("keep_aspect_ratio_policy"), g.same("mode"), g.same("nearest_mode")}));
  return {};
}

}  // namespace

void add_resize_gradient(Builder& plugin) {
  plugin.add(
      Op("ResizeGradient", "heddle")
          .doc("Adds each element of dY to what Resize read for it, with the weights that it read with. It is the gradient of Resize.")
          .shapes("dX has the dims that shape holds")
          .in("dY", float_dtypes)
          .shape_operand("shape")
          .optional("roi", float_dtypes, nullptr)
          .not_differentiable()
          .optional("scales", dtypes<float>(), nullptr)
          .on_host()
          .not_differentiable()
          .optional("sizes", dtypes<int64_t>(), nullptr)
          .on_host()
          .out("dX", {}, float_dtypes)
          .attribute("antialias", 0)
          .maybe("axes", HEDDLE_ATTRIBUTE_INTS)
          .attribute("coordinate_transformation_mode", "half_pixel")
          .attribute("cubic_coeff_a", -0.75)
          .attribute("exclude_outside", 0)
          .attribute("extrapolation_value", 0.0)
          .attribute("keep_aspect_ratio_policy", "stretch")
          .attribute("mode", "nearest")
          .attribute("nearest_mode", "round_prefer_floor")
          .infer(infer_resize_gradient)
          .gradient<resize_gradient_gradient>()
          .cpu<ResizeGradient>()
          .example("f32[1,4,2] = 1 2 3 4 5 6 7 8, i64[3] = 1 2 2, -, f32[3] = 1 2 1 -> f32[1,2,2] = 4 6 12 14", "by hand")
          .example("f32[1,7] = 1 2 3 4 5 6 7, i64[2] = 1 4, -, -, i64[2] = 1 7; mode=\"linear\", "
                   "coordinate_transformation_mode=\"align_corners\" -> f32[1,4] = 2 6 10 10",
                   "by hand")
          .example("f32[1,3] = 1 2 4, i64[2] = 1 4, f32[4] = 0 0.25 1 1.25, -, i64[2] = 1 3; mode=\"linear\", "
                   "coordinate_transformation_mode=\"tf_crop_and_resize\", extrapolation_value=9.0 -> f32[1,4] = 0.25 0.75 1.5 0.5",
                   "by hand")
          .example("f32[2,2] = 1 2 3 4, i64[2] = 2 1, -, -, i64[1] = 2; axes=[1] -> f32[2,1] = 3 7", "by hand")
          .example("f32[3] = 1 2 4, i64[1] = 2, -, f32[1] = 1.5; nearest_mode=\"ceil\", "
                   "coordinate_transformation_mode=\"asymmetric\" -> f32[2] = 1 6",
                   "by hand")
          .example("f32[2,2] = 1 2 3 4, i64[2] = 1 1, -, -, i64[2] = 2 3; keep_aspect_ratio_policy=\"not_larger\" -> f32[1,1] = 10",
                   "by hand")
          .example("f32[1] = 4, i64[1] = 2, -, f32[1] = 0.5; mode=\"linear\", antialias=1 -> f32[2] = 2 2", "by hand")
          .example("f32[2] = 1 2, i64[1] = 1, -, f32[1] = 2; mode=\"cubic\", exclude_outside=1, cubic_coeff_a=-0.5 -> f32[1] = 3",
                   "by hand"));
}

}  // namespace heddle::cpu
