// heddle::ScatterSlice: writes or adds updates to data in the places where Slice with the same operands would read. The gradient of Slice.
#include <cstring>

#include "families.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/movement/scatter_reduction.h"
#include "shared/movement/slices.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t slice_updates_port = 1;

// The inputs in the order of Slice: without the updates.
struct SliceInputs {
  const heddle_tensor* of[5] = {};
  uint32_t count = 0;
  SliceInputs(const heddle_tensor* const* inputs, uint32_t input_count) {
    for (uint32_t i = 0; i < input_count; ++i)
      if (i != slice_updates_port && count < 5) of[count++] = inputs[i];
  }
};

// Accepts two of the five reductions of Scatter.
Status parse_slice_reduction(const Attributes& attributes, bool* adds) {
  ScatterReduction reduction;
  HEDDLE_PLUGIN_CHECK(parse_reduction(attributes, &reduction));
  *adds = reduction == ScatterReduction::add;
  return *adds || reduction == ScatterReduction::none ? Status() : invalid("reduction is neither none nor add");
}

Status infer_scatter_slice(InferContext& context) {
  bool adds = false;
  HEDDLE_PLUGIN_CHECK(parse_slice_reduction(context.attributes, &adds));
  const Dims data = context.dims(0), updates = context.dims(slice_updates_port);
  if (updates.rank != data.rank)
    return invalid("updates has shape " + dims_text(updates) + ", expected the rank of data " + dims_text(data));
  bool known = true;
  for (uint32_t i = slice_updates_port + 1; i < context.input_count(); ++i) {
    if (!context.has_input(i)) continue;
    if (context.dims(i).rank != 1) return not_one_dimensional("an operand", context.dims(i));
    known = known && context.known(i);
  }
  if (known) {
    const SliceInputs slice(context.inputs(), context.input_count());
    Extents read;
    HEDDLE_PLUGIN_CHECK(slice_extents(slice.of, slice.count, &read));
    if (!std::equal(updates.begin(), updates.end(), read.dims().begin(), read.dims().end()))
      return invalid("updates has shape " + dims_text(updates) + ", the slice has " + dims_text(read.dims()));
  }
  context.set_dims(0, data);
  return {};
}

// Tiles are ranges of rows of the output: the rows end at the last axis that is not read whole; the axes after it form blocks.
class ScatterSlice {
 public:
  Status create(const CreateContext& context) { return parse_slice_reduction(context.attributes, &adds_); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &data = *context.inputs[0], &updates = *context.inputs[slice_updates_port], &y = *context.outputs[0];
    const SliceInputs slice(context.inputs, context.input_count);
    HEDDLE_PLUGIN_CHECK(check_slices(slice.of, slice.count, updates));
    AxisSlice slices[HEDDLE_MAX_RANK];
    HEDDLE_PLUGIN_CHECK(read_slices(slice.of, slice.count, slices));
    if (y.element_count == 0) return {};
    const Plan plan(y, slices);
    const Tiling::Range rows = tiling_.range(plan.rows, begin, end);
    CancellationPoll poll(context);
    if (data.data != y.data)
      copy_cancellable(static_cast<char*>(y.data) + rows.first * plan.row_bytes,
                       static_cast<const char*>(data.data) + rows.first * plan.row_bytes, (rows.last - rows.first) * plan.row_bytes, poll);
    const char* from = static_cast<const char*>(updates.data);
    for (int64_t row = rows.first; row < rows.last && updates.element_count > 0 && !poll.stopped(); ++row) {
      int64_t read = 0;
      if (!plan.updates_of(row, &read)) continue;
      char* const to = static_cast<char*>(y.data) + row * plan.row_bytes;
      if (adds_)
        with_dtype(y.dtype,
                   [&](auto tag) { add_row<typename decltype(tag)::type>(plan, from + read * plan.read_bytes, to, y.dtype, poll); });
      else
        write_row(plan, from + read * plan.read_bytes, to, poll);
    }
    return poll.status();
  }

 private:
  struct Plan {
    AxisSlice slices[HEDDLE_MAX_RANK];
    int64_t extents[HEDDLE_MAX_RANK];
    int rank = 0;  // number of axes, the last is the column
    int64_t block = 1, row_bytes = 1, read_bytes = 1, rows = 1;

    Plan(const heddle_tensor& y, const AxisSlice* of_axes) : rank(y.rank), block(static_cast<int64_t>(byte_width(y.dtype))) {
      const auto whole = [&](int axis) {
        return of_axes[axis].start == 0 && of_axes[axis].step == 1 && of_axes[axis].extent == y.dims[axis];
      };
      while (rank > 0 && whole(rank - 1)) block *= y.dims[--rank];
      for (int i = 0; i < rank; ++i) slices[i] = of_axes[i], extents[i] = y.dims[i];
      if (rank == 0) slices[0] = {0, 1, 1}, extents[0] = 1, rank = 1;
      row_bytes = extents[rank - 1] * block;
      read_bytes = slices[rank - 1].extent * block;
      for (int i = 0; i + 1 < rank; ++i) rows *= extents[i];
    }
    const AxisSlice& column() const { return slices[rank - 1]; }
    // Finds the row of updates that is written to a row of the output; false: none.
    bool updates_of(int64_t row, int64_t* read) const {
      int64_t stride = 1;
      for (int i = rank - 2; i >= 0; --i) {
        const AxisSlice& s = slices[i];
        const int64_t distance = row % extents[i] - s.start, at = s.step == -1 ? -distance : distance / s.step;
        if (at < 0 || at >= s.extent || at * s.step != distance) return false;
        *read += at * stride;
        stride *= s.extent;
        row /= extents[i];
      }
      return true;
    }
  };

  static void write_row(const Plan& plan, const char* from, char* to, CancellationPoll& poll) {
    const AxisSlice& column = plan.column();
    if (column.extent == 0) return;
    to += column.start * plan.block;
    if (column.step == 1 || column.extent == 1) return copy_cancellable(to, from, plan.read_bytes, poll);
    const int64_t step = column.step * plan.block;
    switch (plan.block) {
      case 1:
        return write_elements<uint8_t>(from, to, column.extent, step, poll);
      case 2:
        return write_elements<uint16_t>(from, to, column.extent, step, poll);
      case 4:
        return write_elements<uint32_t>(from, to, column.extent, step, poll);
      case 8:
        return write_elements<uint64_t>(from, to, column.extent, step, poll);
      default:
        for (int64_t i = 0; i < column.extent && !poll.stopped(); ++i)
          copy_cancellable(to + i * step, from + i * plan.block, plan.block, poll);
    }
  }
  template <class T>
  static void add_row(const Plan& plan, const char* from, char* to, heddle_dtype dtype, CancellationPoll& poll) {
    const AxisSlice& column = plan.column();
    const int64_t elements = plan.block / static_cast<int64_t>(sizeof(T)), step = column.extent > 1 ? column.step * plan.block : 0;
    to += column.start * plan.block;
    // Elements that are contiguous in both are moved together.
    const bool joined = column.step == 1 || column.extent <= 1;
    const int64_t runs = joined ? std::min<int64_t>(column.extent, 1) : column.extent;
    const int64_t length = joined ? column.extent * elements : elements;
    for (int64_t run = 0; run < runs; ++run) {
      auto* const y = reinterpret_cast<T*>(to + run * step);
      const auto* const update = reinterpret_cast<const T*>(from + run * plan.block);
      for (int64_t first = 0; first < length; first += CancellationPoll::between) {
        const int64_t last = std::min(first + CancellationPoll::between, length);
        if (poll.stops(last - first)) return;
        add_elements(y + first, update + first, last - first, dtype);
      }
    }
  }
  // The sum of bools is their logical or.
  template <class T>
  static void add_elements(T* y, const T* update, int64_t count, heddle_dtype dtype) {
    if (dtype == HEDDLE_BOOL) {
      for (int64_t i = 0; i < count; ++i) y[i] = to_arithmetic(update[i]) != 0 ? update[i] : y[i];
      return;
    }
    for (int64_t i = 0; i < count; ++i) y[i] = from_arithmetic<T>(wrapping_add(to_arithmetic(y[i]), to_arithmetic(update[i])));
  }
  template <class W>
  static void write_elements(const char* from, char* to, int64_t count, int64_t step, CancellationPoll& poll) {
    for (int64_t first = 0; first < count; first += CancellationPoll::between) {
      const int64_t last = std::min(first + CancellationPoll::between, count);
      if (poll.stops(last - first)) return;
      for (int64_t i = first; i < last; ++i) std::memcpy(to + i * step, from + i * static_cast<int64_t>(sizeof(W)), sizeof(W));
    }
  }
  bool adds_ = false;
  Tiling tiling_;
};

// Overwritten elements have no gradient.
Status scatter_slice_gradient(GradientContext& g) {
  const bool adds = g.attributes().s("reduction") == std::string("add");
  if (g.wants(0) && adds) g.give(0, g.dy(0));
  if (g.wants(0) && !adds)
    g.give(0, g.emit("ScatterSlice", {g.dy(0), zeros_like(g, g.x(1)), g.x(2), g.x(3), g.x(4), g.x(5)}, {}, "heddle"));
  if (g.wants(1)) g.give(1, g.emit("Slice", {g.dy(0), g.x(2), g.x(3), g.x(4), g.x(5)}));
  return {};
}

}  // namespace

void add_scatter_slice(Builder& plugin) {
  plugin.add(
      Op("ScatterSlice", "heddle")
          .doc("Writes updates into a copy of data where Slice would read, or adds them. It is the gradient of Slice.")
          .shapes("output has the dims of data")
          .in("data")
          .in("updates")
          .in("starts", index_dtypes, nullptr)
          .on_host()
          .in("ends", index_dtypes, nullptr)
          .on_host()
          .optional("axes", index_dtypes, nullptr)
          .on_host()
          .optional("steps", index_dtypes, nullptr)
          .on_host()
          .out("output")
          .in_place("output", "data")
          .attribute("reduction", "none")
          .infer(infer_scatter_slice)
          .gradient<scatter_slice_gradient>()
          .cpu<ScatterSlice>()
          .example("f32[2,3] = 1 2 3 4 5 6, f32[1,2] = 8 9, i64[2] = 0 1, i64[2] = 1 3 -> f32[2,3] = 1 8 9 4 5 6",
                   "NumPy: y[0:1, 1:3] = updates")
          .example("f32[5] = 1 2 3 4 5, f32[3] = 7 8 9, i64[1] = -1, i64[1] = -6, i64[1] = 0, i64[1] = -2 -> f32[5] = 9 2 8 4 7",
                   "NumPy: y[::-2] = updates")
          .example("i32[2,3] = 1 0 0 1 0 1, i32[2,2] = 7, i32[1] = 1, i32[1] = 9, i32[1] = -1, i32[1] = 1 -> i32[2,3] = 1 7 7 1 7 7",
                   "NumPy: y[:, 1:] = updates")
          .example("f32[2,3] = 1 2 3 4 5 6, f32[2,2] = 1 2 3 4, i64[1] = 0, i64[1] = 9, i64[1] = 1, i64[1] = 2; reduction=\"add\" -> "
                   "f32[2,3] = 2 2 5 7 5 10",
                   "NumPy: y[:, 0:9:2] += updates"));
}

}  // namespace heddle::cpu
