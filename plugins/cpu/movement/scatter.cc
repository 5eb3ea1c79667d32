// ScatterElements and ScatterND: a copy of data in which updates are written, or combined, at indices. Updates to the same element take
// effect in the order of indices, whatever the number of threads: tiles divide the output, and each goes through all of the updates
// that concern its part.
#include <algorithm>
#include <type_traits>

#include "families.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/input_shapes.h"
#include "shared/movement/scatter_reduction.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

// Calls f with the reduction as a constant, so that no loop asks for it.
template <class F>
auto with_reduction(ScatterReduction reduction, F&& f) {
  switch (reduction) {
    case ScatterReduction::add:
      return f(std::integral_constant<ScatterReduction, ScatterReduction::add>());
    case ScatterReduction::mul:
      return f(std::integral_constant<ScatterReduction, ScatterReduction::mul>());
    case ScatterReduction::max:
      return f(std::integral_constant<ScatterReduction, ScatterReduction::max>());
    case ScatterReduction::min:
      return f(std::integral_constant<ScatterReduction, ScatterReduction::min>());
    case ScatterReduction::none:
      break;
  }
  return f(std::integral_constant<ScatterReduction, ScatterReduction::none>());
}

// Returns reduction(y, update).
template <ScatterReduction reduction, class T>
T combined(T y, T update) {
  if constexpr (reduction == ScatterReduction::none) {
    return update;
  } else {
    const Arithmetic<T> a = to_arithmetic(y), b = to_arithmetic(update);
    if constexpr (reduction == ScatterReduction::add) return from_arithmetic<T>(wrapping_add(a, b));
    if constexpr (reduction == ScatterReduction::mul) return from_arithmetic<T>(wrapping_mul(a, b));
    if constexpr (reduction == ScatterReduction::max) return b > a || is_nan(b) ? update : y;
    if constexpr (reduction == ScatterReduction::min) return b < a || is_nan(b) ? update : y;
  }
}

// ---------------------------------------------------------------- ScatterElements

Status infer_scatter_elements(InferContext& context) {
  ScatterReduction reduction;
  HEDDLE_PLUGIN_CHECK(parse_reduction(context.attributes, &reduction));
  const Dims data = context.dims(0), indices = context.dims(1), updates = context.dims(2);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), data.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), data.rank);
  if (!std::equal(indices.begin(), indices.end(), updates.begin(), updates.end()))
    return invalid("indices " + dims_text(indices) + " and updates " + dims_text(updates) + " differ in shape");
  bool fits = data.rank == indices.rank;
  for (int i = 0; fits && i < data.rank; ++i) fits = i == axis || indices[i] <= data[i];
  if (!fits)
    return invalid("indices " + dims_text(indices) + " must have data's rank and, but for axis " + std::to_string(axis) +
                   ", no larger extents than data " + dims_text(data));
  context.set_dims(0, data);
  return {};
}

// Error: along an axis without elements every index is outside.
Status check_of_nothing(const heddle_tensor& indices, int64_t position, int64_t bound, int axis) {
  return bound == 0 && indices.element_count > 0 ? index_outside(integer_at(indices, position), bound, axis) : Status();
}

class ScatterElements {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    return reduction_of(context, &reduction_);
  }
  // Parts of the output are ranges of its first dimension, or with axis 0, along which updates may go to any part, of its second one.
  Status prepare(PrepareContext& context) {
    if (context.output(0)->rank > 1)
      tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), 4.0);
    else
      context.set_cost_ns(static_cast<double>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 private:
  int divided() const { return axis_ > 0 ? 0 : 1; }
  void copy_part(const heddle_tensor& data, const heddle_tensor& y, Tiling::Range range, CancellationPoll& poll) const;
  // Goes through the rows of indices, all dimensions but the last. Index: of indices.
  template <ScatterReduction reduction, class T, class Index>
  Status scatter(const RunContext& context, Tiling::Range range, CancellationPoll& poll) const {
    const heddle_tensor &indices = *context.inputs[1], &y = *context.outputs[0];
    const int rank = y.rank, columns = rank - 1;
    int64_t strides[HEDDLE_MAX_RANK], index_strides[HEDDLE_MAX_RANK], low[HEDDLE_MAX_RANK] = {}, high[HEDDLE_MAX_RANK], at[HEDDLE_MAX_RANK];
    dense_strides(dims_of(y), strides);
    dense_strides(dims_of(indices), index_strides);
    std::copy_n(indices.dims, rank, high);
    if (rank > 1) low[divided()] = range.first, high[divided()] = std::min(range.last, indices.dims[divided()]);
    int64_t rows = 1;
    for (int d = 0; d < rank; ++d) {
      if (low[d] >= high[d]) return {};
      if (d < columns) rows *= high[d] - low[d];
    }
    std::copy_n(low, rank, at);
    const int64_t step = axis_ == columns ? 0 : 1, bound = y.dims[axis_], stride = strides[axis_];
    for (int64_t row = 0; row < rows; ++row) {
      int64_t from = 0, base = 0;
      for (int d = 0; d < columns; ++d) {
        from += at[d] * index_strides[d];
        if (d != axis_) base += at[d] * strides[d];
      }
      const Index* const places = static_cast<const Index*>(indices.data) + from;
      const T* const updates = static_cast<const T*>(context.inputs[2]->data) + from;
      T* const to = static_cast<T*>(y.data) + base;
      for (int64_t c = low[columns]; c < high[columns];) {
        const int64_t last = std::min(high[columns], c + CancellationPoll::between / 4);
        if (poll.stops(4 * (last - c))) return cancelled();
        for (; c < last; ++c) {
          int64_t index = places[c];
          if (!resolve_index(&index, bound)) return index_outside(places[c], bound, axis_);
          T& place = to[index * stride + c * step];
          place = combined<reduction>(place, updates[c]);
        }
      }
      for (int d = columns - 1; d >= 0; --d) {
        if (++at[d] < high[d]) break;
        at[d] = low[d];
      }
    }
    return {};
  }
  int axis_ = 0;
  ScatterReduction reduction_ = ScatterReduction::none;
  Tiling tiling_;
};

// Defined after the class: clang 14 drops a template of the class that an earlier generic lambda uses.
Status ScatterElements::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor &data = *context.inputs[0], &y = *context.outputs[0];
  if (y.element_count == 0) return check_of_nothing(*context.inputs[1], 0, y.dims[axis_], axis_);
  const Tiling::Range range = tiling_.range(y.rank > 1 ? y.dims[divided()] : 1, begin, end);
  CancellationPoll poll(context);
  if (data.data != y.data) copy_part(data, y, range, poll);
  if (poll.stopped() || context.inputs[1]->element_count == 0) return poll.status();
  return with_dtype(y.dtype, [&](auto tag) -> Status {
    using T = typename decltype(tag)::type;
    return with_reduction(reduction_, [&](auto reduction) -> Status {
      if (context.inputs[1]->dtype == HEDDLE_I32) return scatter<decltype(reduction)::value, T, int32_t>(context, range, poll);
      return scatter<decltype(reduction)::value, T, int64_t>(context, range, poll);
    });
  });
}

// Copies the part of data that this tile writes.
void ScatterElements::copy_part(const heddle_tensor& data, const heddle_tensor& y, Tiling::Range range, CancellationPoll& poll) const {
  const int64_t parts = y.rank > 1 ? y.dims[divided()] : 1, outer = y.rank > 1 && axis_ == 0 ? y.dims[0] : 1;
  const int64_t part_bytes = static_cast<int64_t>(y.byte_size) / outer / parts;
  for (int64_t i = 0; i < outer && !poll.stopped(); ++i) {
    const int64_t first = (i * parts + range.first) * part_bytes;
    copy_cancellable(static_cast<char*>(y.data) + first, static_cast<const char*>(data.data) + first,
                     (range.last - range.first) * part_bytes, poll);
  }
}

// ---------------------------------------------------------------- ScatterND

Status infer_scatter_nd(InferContext& context) {
  ScatterReduction reduction;
  HEDDLE_PLUGIN_CHECK(parse_reduction(context.attributes, &reduction));
  const Dims data = context.dims(0), indices = context.dims(1);
  if (data.rank < 1 || indices.rank < 1) return invalid("data and indices need at least one dimension");
  const int64_t depth = indices[-1];
  if (depth < 1 || depth > data.rank)
    return invalid("the last dimension of indices is " + std::to_string(depth) + ", expected 1 to " + std::to_string(data.rank));
  std::vector<int64_t> expected(indices.begin(), indices.end() - 1);
  expected.insert(expected.end(), data.begin() + depth, data.end());
  HEDDLE_PLUGIN_CHECK(expect_shape(context, 2, expected));
  context.set_dims(0, data);
  return {};
}

class ScatterND {
 public:
  Status create(const CreateContext& context) { return reduction_of(context, &reduction_); }
  // Parts of the output are ranges of columns of its slices; short slices are not divided.
  Status prepare(PrepareContext& context) {
    const heddle_tensor &data = *context.input(0), &indices = *context.input(1);
    depth_ = static_cast<int>(dims_of(indices)[-1]);
    slice_ = dims_of(data).count(depth_, data.rank);
    slices_ = dims_of(data).count(0, depth_);
    if (slice_ >= 1024)
      tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), 2.0);
    else
      context.set_cost_ns(static_cast<double>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 private:
  template <ScatterReduction reduction, class T>
  Status scatter(const RunContext& context, Tiling::Range columns, CancellationPoll& poll) const {
    const heddle_tensor &indices = *context.inputs[1], &y = *context.outputs[0];
    const T* updates = static_cast<const T*>(context.inputs[2]->data);
    for (int64_t u = 0; u < indices.element_count / depth_ && !poll.stops(4 + columns.last - columns.first); ++u) {
      int64_t at = 0;
      for (int k = 0; k < depth_; ++k) {
        int64_t index = integer_at(indices, u * depth_ + k);
        if (!resolve_index(&index, y.dims[k])) return index_outside(integer_at(indices, u * depth_ + k), y.dims[k], k);
        at = at * y.dims[k] + index;
      }
      T* const to = static_cast<T*>(y.data) + at * slice_;
      const T* const update = updates + u * slice_;
      if constexpr (reduction == ScatterReduction::none)
        std::copy(update + columns.first, update + columns.last, to + columns.first);
      else
        for (int64_t c = columns.first; c < columns.last; ++c) to[c] = combined<reduction>(to[c], update[c]);
    }
    return poll.status();
  }
  int depth_ = 1;
  int64_t slice_ = 1, slices_ = 1;
  ScatterReduction reduction_ = ScatterReduction::none;
  Tiling tiling_;
};

Status ScatterND::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor &data = *context.inputs[0], &y = *context.outputs[0];
  for (int k = 0; y.element_count == 0 && k < depth_; ++k) HEDDLE_PLUGIN_CHECK(check_of_nothing(*context.inputs[1], k, y.dims[k], k));
  if (y.element_count == 0) return {};
  const Tiling::Range columns = tiling_.range(slice_, begin, end);
  const auto width = static_cast<int64_t>(byte_width(y.dtype));
  CancellationPoll poll(context);
  if (data.data != y.data) {
    const bool whole = columns.last - columns.first == slice_;
    const int64_t rows = whole ? 1 : slices_, stride = slice_ * width;
    const int64_t bytes = whole ? static_cast<int64_t>(y.byte_size) : (columns.last - columns.first) * width;
    for (int64_t r = 0; r < rows; ++r)
      copy_cancellable(static_cast<char*>(y.data) + r * stride + columns.first * width,
                       static_cast<const char*>(data.data) + r * stride + columns.first * width, bytes, poll);
  }
  return with_dtype(y.dtype, [&](auto tag) -> Status {
    return with_reduction(reduction_, [&](auto reduction) -> Status {
      return scatter<decltype(reduction)::value, typename decltype(tag)::type>(context, columns, poll);
    });
  });
}

// A scatter and the gather that reads the places where it writes, with their common attributes.
struct Scattering {
  GradientContext& g;
  const char *scatter, *gather;
  GradientAttribute axis;

  GradientValue scattered(GradientValue data, GradientValue updates, const char* reduction) const {
    return g.emit(scatter, {data, g.x(1), updates}, {axis, {"reduction", reduction}});
  }
  GradientValue gathered(GradientValue data) const { return g.emit(gather, {data, g.x(1)}, {axis}); }
};

// The gradient of a product is the product of all other factors of the same place; where one factor is zero a division does not give it.
void give_of_product(const Scattering& of) {
  GradientContext& g = of.g;
  const auto is_zero = [&](GradientValue x) { return pointwise(g, "select(eq(x0, 0), 1, 0)", {x}); };
  const auto nonzero = [&](GradientValue x) { return pointwise(g, "select(eq(x0, 0), 1, x0)", {x}); };
  const GradientValue zeros = of.scattered(is_zero(g.x(0)), is_zero(g.x(2)), "add");
  const GradientValue products = of.scattered(nonzero(g.x(0)), nonzero(g.x(2)), "mul");
  const std::string others = "select(eq(x1, 0), x2 / x0, select(eq(x1, 1), select(eq(x0, 0), x2, 0), 0)) * x3";
  if (g.wants(0)) g.give(0, pointwise(g, others, {g.x(0), zeros, products, g.dy(0)}));
  if (g.wants(2)) g.give(2, pointwise(g, others, {g.x(2), of.gathered(zeros), of.gathered(products), of.gathered(g.dy(0))}));
}

// Equal extremes share the gradient equally, as in PyTorch's scatter_reduce.
void give_of_extreme(const Scattering& of) {
  GradientContext& g = of.g;
  const GradientValue y = of.gathered(g.y(0));
  const auto equal = [&](GradientValue a, GradientValue b) { return pointwise(g, "select(eq(x0, x1), 1, 0)", {a, b}); };
  const GradientValue data_is = equal(g.x(0), g.y(0)), update_is = equal(g.x(2), y);
  const GradientValue part = pointwise(g, "x0 / x1", {g.dy(0), of.scattered(data_is, update_is, "add")});
  if (g.wants(0)) g.give(0, pointwise(g, "select(eq(x0, 0), 0, x1)", {data_is, part}));
  if (g.wants(2)) g.give(2, pointwise(g, "select(eq(x0, 0), 0, x1)", {update_is, of.gathered(part)}));
}

// If several updates have one place the last one remains, and the others have no gradient: to find it, the number of every update is
// scattered.
GradientValue of_the_last(const Scattering& of, GradientValue gradient) {
  GradientContext& g = of.g;
  const bool by_elements = of.axis.is_given();
  const int index_rank = g.input_type(1).rank, slice_rank = by_elements ? 0 : g.input_type(2).rank - (index_rank - 1);
  const auto extents = [&](GradientValue value, int64_t end) { return g.emit("Shape", {value}, {{"end", end}}); };
  const GradientValue places = by_elements ? shape_of(g, g.x(0)) : extents(g.x(0), g.input_type(0).rank - slice_rank);
  const GradientValue updates = by_elements ? shape_of(g, g.x(1)) : extents(g.x(1), index_rank - 1);
  constexpr int64_t zero = 0, one = 1;
  const GradientValue count = reshape(g, g.emit("ReduceProd", {updates}), g.ints({}));
  const GradientValue numbers =
      reshape(g, g.emit("Range", {g.constant(HEDDLE_I64, {}, &zero), count, g.constant(HEDDLE_I64, {}, &one)}), updates);
  const GradientValue written = g.emit(of.scatter, {zeros_of(g, places, numbers), g.x(1), numbers}, {of.axis});
  GradientValue stays = g.emit("Equal", {of.gathered(written), numbers});
  std::vector<int64_t> of_slices;
  for (int i = 1; i <= slice_rank; ++i) of_slices.push_back(-i);
  if (slice_rank > 0) stays = g.emit("Unsqueeze", {stays, g.ints(of_slices)});
  constexpr float nothing = 0;
  return g.emit("Where", {stays, gradient, g.emit("CastLike", {g.constant(HEDDLE_F32, {}, &nothing), gradient})});
}

// Overwritten elements have no gradient, and added updates have that of the element that they were added to.
Status scatter_gradient(const Scattering& of) {
  GradientContext& g = of.g;
  const std::string reduction = g.attributes().s("reduction");
  if (reduction == "mul") return give_of_product(of), Status();
  if (reduction == "max" || reduction == "min") return give_of_extreme(of), Status();
  const bool adds = reduction == "add";
  if (g.wants(0)) g.give(0, adds ? g.dy(0) : of.scattered(g.dy(0), zeros_like(g, g.x(2)), "none"));
  if (g.wants(2)) g.give(2, adds ? of.gathered(g.dy(0)) : of_the_last(of, of.gathered(g.dy(0))));
  return {};
}
Status scatter_elements_gradient(GradientContext& g) {
  return scatter_gradient({g, "ScatterElements", "GatherElements", g.same("axis")});
}
Status scatter_nd_gradient(GradientContext& g) {
  return scatter_gradient({g, "ScatterND", "GatherND", GradientAttribute(nullptr)});
}

}  // namespace

void add_scatter(Builder& plugin) {
  plugin.add(Op("ScatterElements", "", 18)
                 .doc("Writes updates into a copy of data, each at its index along the axis, or combines them as `reduction` says (none, "
                      "add, mul, max, min), in the order of indices.")
                 .formula("output[indices[i][j]][j] = updates[i][j], for axis 0")
                 .shapes("output has the dims of data; updates has those of indices")
                 .in("data")
                 .in("indices", index_dtypes, nullptr)
                 .indexes("data", -1)
                 .in("updates")
                 .out("output")
                 .in_place("output", "data")
                 .attribute("axis", 0)
                 .attribute("reduction", "none")
                 .infer(infer_scatter_elements)
                 .gradient<scatter_elements_gradient>()
                 .cpu<ScatterElements>()
                 .example("f32[3] = 1 2 3, i64[2] = 2 -3, f32[2] = 8 9 -> f32[3] = 9 2 8", "ONNX Runtime")
                 .example("f32[2,3] = 1 2 3 4 5 6, i32[1,2] = 2 0, f32[1,2] = 8 9; axis=1 -> f32[2,3] = 9 2 8 4 5 6", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3] = 1 1 0, f32[3] = 4 1 2; reduction=\"add\" -> f32[3] = 3 7 3", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3] = 1 1 0, f32[3] = 4 1 2; reduction=\"mul\" -> f32[3] = 2 8 3", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3] = 1 1 0, f32[3] = 4 1 2; reduction=\"max\" -> f32[3] = 2 4 3", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3] = 1 1 0, f32[3] = 4 1 2; reduction=\"min\" -> f32[3] = 1 1 3", "ONNX Runtime"));
  plugin.add(Op("ScatterND", "", 18)
                 .doc("Writes slices of updates into a copy of data at the tuples that the last axis of indices holds, or combines them as "
                      "`reduction` says (none, add, mul, max, min), in the order of indices.")
                 .shapes("output has the dims of data")
                 .in("data")
                 .in("indices", dtypes<int64_t>(), nullptr)
                 .in("updates")
                 .out("output")
                 .in_place("output", "data")
                 .attribute("reduction", "none")
                 .infer(infer_scatter_nd)
                 .gradient<scatter_nd_gradient>()
                 .cpu<ScatterND>()
                 .example("f32[4] = 1 2 3 4, i64[2,1] = 3 0, f32[2] = 8 9 -> f32[4] = 9 2 3 8", "ONNX Runtime")
                 .example("i32[2,2] = 1 0 0 1, i64[1,1] = -1, i32[1,2] = 1 0 -> i32[2,2] = 1 0 1 0", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3,1] = 1 1 0, f32[3] = 4 1 2; reduction=\"add\" -> f32[3] = 3 7 3", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3,1] = 1 1 0, f32[3] = 4 1 2; reduction=\"mul\" -> f32[3] = 2 8 3", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3,1] = 1 1 0, f32[3] = 4 1 2; reduction=\"max\" -> f32[3] = 2 4 3", "ONNX Runtime")
                 .example("f32[3] = 1 2 3, i64[3,1] = 1 1 0, f32[3] = 4 1 2; reduction=\"min\" -> f32[3] = 1 1 3", "ONNX Runtime"));
}

}  // namespace heddle::cpu
