// Compress and NonZero: outputs whose extent depends on data. They are planned at their bound; the kernel writes its results contiguously
// and reports the true extent.
#include <algorithm>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

// The true extent of a bounded output; null when inference knew it already.
void set_extent(const heddle_tensor& output, int64_t extent) {
  if (output.extent) *output.extent = extent;
}

// ---------------------------------------------------------------- Compress

Status infer_compress(InferContext& context) {
  const Dims x = context.dims(0), condition = context.dims(1);
  if (condition.rank != 1) return not_one_dimensional("condition", condition);
  std::vector<int64_t> dims;
  int axis = 0;
  if (context.attributes.has("axis")) {
    if (!normalize_axis(context.attributes.i("axis"), x.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), x.rank);
    dims = vector_of(x);
  } else {
    dims = {x.count(0, x.rank)};
  }
  int64_t& extent = dims[static_cast<size_t>(axis)];
  if (condition[0] > extent)
    return invalid("condition has " + std::to_string(condition[0]) + " entries, axis " + std::to_string(axis) + " has " +
                   std::to_string(extent));
  extent = condition[0];
  if (context.known(1)) {
    const auto* flags = static_cast<const uint8_t*>(context.input(1).data);
    extent = std::count_if(flags, flags + condition[0], [](uint8_t flag) { return flag != 0; });
  } else {
    context.set_bounded(0, axis);
  }
  context.set_dims(0, dims);
  return {};
}

// x [before, condition.., row] -> output [before, chosen, row].
class Compress {
 public:
  Status create(const CreateContext& context) {
    flat_ = !context.attributes.has("axis");
    if (!flat_) normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    return {};
  }
  Status prepare(PrepareContext& context) {
    context.set_cost_ns(100.0 + static_cast<double>(context.input(0)->byte_size) / bytes_per_ns);
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const heddle_tensor &x = *context.inputs[0], &condition = *context.inputs[1];
    const Dims dims = dims_of(x);
    const auto* flags = static_cast<const uint8_t*>(condition.data);
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    const int64_t before = flat_ ? 1 : dims.count(0, axis_), extent = flat_ ? x.element_count : dims[axis_];
    const int64_t row = width * (flat_ ? 1 : dims.count(axis_ + 1, dims.rank));
    const char* from = static_cast<const char*>(x.data);
    char* to = static_cast<char*>(context.outputs[0]->data);
    int64_t chosen = 0;
    CancellationPoll poll(context);
    for (int64_t i = 0; i < condition.element_count; ++i) chosen += flags[i] != 0;
    const heddle_tensor& y = *context.outputs[0];
    const int64_t planned = y.dims[flat_ ? 0 : axis_];
    if (y.extent ? chosen > planned : chosen != planned) return other_content({{"condition", &condition}}, {}, {&chosen, 1}, {&planned, 1});
    for (int64_t b = 0; b < before && chosen > 0 && row > 0; ++b)
      for (int64_t i = 0; i < condition.element_count; ++i) {
        if (poll.stops(1)) return cancelled();
        if (!flags[i]) continue;
        copy_cancellable(to, from + (b * extent + i) * row, row, poll);
        to += row;
      }
    set_extent(*context.outputs[0], chosen);
    return {};
  }

 private:
  bool flat_ = true;
  int axis_ = 0;
};

// Writes the gradients back to where the chosen slices were: with ScatterND along the first axis, to which the chosen axis is moved.
Status compress_gradient(GradientContext& g) {
  // [chosen, 1]: numbers compressed as the slices were, so that inference knows equally much about their count.
  constexpr int64_t zero = 0, one = 1;
  const GradientValue numbers =
      g.emit("Range", {g.constant(HEDDLE_I64, {}, &zero), g.emit("Size", {g.x(1)}), g.constant(HEDDLE_I64, {}, &one)});
  const GradientValue places = g.emit("Unsqueeze", {g.emit("Compress", {numbers, g.x(1)}, {{"axis", 0}}), g.ints({1})});
  const auto zeros = [&](GradientValue extents) { return zeros_of(g, extents, g.dy(0)); };
  const GradientValue shape = shape_of(g, g.x(0));
  if (!g.attributes().has("axis")) {
    const GradientValue flat = g.emit("ScatterND", {zeros(reshape(g, g.emit("Size", {g.x(0)}), g.ints({1}))), places, g.dy(0)});
    g.give(0, reshape(g, flat, shape));
    return {};
  }
  const int rank = g.input_type(0).rank;
  const int64_t axis = g.attributes().i("axis") + (g.attributes().i("axis") < 0 ? rank : 0);
  if (axis == 0) {
    g.give(0, g.emit("ScatterND", {zeros(shape), places, g.dy(0)}));
    return {};
  }
  std::vector<int64_t> to_front = {axis}, back;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) to_front.push_back(i);
    back.push_back(i < axis ? i + 1 : i == axis ? 0 : i);
  }
  const GradientValue turned = g.emit("Transpose", {g.dy(0)}, {{"perm", to_front}});
  const GradientValue sums = g.emit("ScatterND", {zeros(g.emit("Gather", {shape, g.ints(to_front)})), places, turned});
  g.give(0, g.emit("Transpose", {sums}, {{"perm", back}}));
  return {};
}

// ---------------------------------------------------------------- NonZero

Status infer_non_zero(InferContext& context) {
  const Dims x = context.dims(0);
  context.set_dims(0, std::vector<int64_t>{x.rank, x.count(0, x.rank)});
  context.set_bounded(0, 1);
  return {};
}

// A mask of the bits that make an element non-zero: all but the sign of floats, since -0 is 0.
uint64_t value_bits(heddle_dtype dtype) {
  const uint64_t all = ~uint64_t{0} >> (64 - 8 * byte_width(dtype));
  const bool is_float = (HEDDLE_DTYPE_BIT(dtype) & float_dtypes) != 0;
  return is_float ? all >> 1 : all;
}

class NonZero {
 public:
  Status prepare(PrepareContext& context) {
    context.set_cost_ns(100.0 + static_cast<double>(context.input(0)->element_count));
    return {};
  }
  Status run(const RunContext& context, int64_t, int64_t) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    CancellationPoll poll(context);
    with_width(byte_width(x.dtype), [&](auto tag) {
      using W = typename decltype(tag)::type;
      find<W>(x, y, static_cast<W>(value_bits(x.dtype)), poll);
    });
    return poll.status();
  }

 private:
  template <class W>
  static void find(const heddle_tensor& x, const heddle_tensor& y, W mask, CancellationPoll& poll) {
    const W* data = static_cast<const W*>(x.data);
    int64_t count = 0;
    for (int64_t first = 0; first < x.element_count && !poll.stops(CancellationPoll::between / 4); first += CancellationPoll::between)
      for (int64_t i = first; i < std::min(first + CancellationPoll::between, x.element_count); ++i) count += (data[i] & mask) != 0;
    // The output is [rank, count]: row d holds coordinate d.
    auto* coordinates = static_cast<int64_t*>(y.data);
    int64_t at[HEDDLE_MAX_RANK] = {}, found = 0;
    for (int64_t i = 0; found < count && !poll.stops(2); ++i) {
      if (data[i] & mask) {
        for (int d = 0; d < x.rank; ++d) coordinates[d * count + found] = at[d];
        ++found;
      }
      for (int d = x.rank - 1; d >= 0; --d) {
        if (++at[d] < x.dims[d]) break;
        at[d] = 0;
      }
    }
    set_extent(y, count);
  }
};

}  // namespace

void add_compress_nonzero(Builder& plugin) {
  plugin.add(Op("Compress", "", 11)
                 .doc("Keeps the slices along an axis whose condition is true or, without an axis, such elements of the flattened input.")
                 .shapes("output has the dims of input, and on the axis as many as conditions are true; without an axis it has one axis")
                 .in("input")
                 .in("condition", dtypes<bool>(), nullptr)
                 .out("output")
                 .maybe("axis", HEDDLE_ATTRIBUTE_INT)
                 .infer(infer_compress)
                 .gradient<compress_gradient>()
                 .cpu<Compress>()
                 .example("f32[3,2] = 1 2 3 4 5 6, bool[3] = 0 1 1; axis=0 -> f32[2,2] = 3 4 5 6", "ONNX Runtime")
                 .example("f32[2,3] = 1 2 3 4 5 6, bool[2] = 0 1; axis=-1 -> f32[2,1] = 2 5", "ONNX Runtime")
                 .example("i32[2,3] = 1 0 0 1 0 1, bool[5] = 1 0 0 1 1 -> i32[3] = 1 1 0", "ONNX Runtime"));
  plugin.add(Op("NonZero", "", 13)
                 .doc("Finds the coordinates of all elements that are not zero, in row-major order.")
                 .shapes("Y is [rank of X, count]")
                 .in("X")
                 .out_as("Y", HEDDLE_I64)
                 .infer(infer_non_zero)
                 .cpu<NonZero>()
                 .example("f32[2,3] = 1 0 3 0 0 1 -> i64[2,3] = 0 0 1 0 2 2", "ONNX Runtime")
                 .example("i32[2,2] = 1 0 1 1 -> i64[2,3] = 0 1 1 0 0 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu
