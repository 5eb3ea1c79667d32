// Gather, GatherElements, GatherND: elements picked by index. Indices count from the end when negative; one outside its axis is an error
// that names it.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "families.h"
#include "movement/index_loops.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"
#include "support/moved_block.h"

namespace heddle::cpu {
namespace {

constexpr int64_t chunk_bytes = 64 * 1024;  // a longer row is divided

// ---------------------------------------------------------------- Gather

Status infer_gather(InferContext& context) {
  const Dims data = context.dims(0), indices = context.dims(1);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), data.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), data.rank);
  HEDDLE_PLUGIN_CHECK(check_rank(static_cast<size_t>(data.rank + indices.rank - 1)));
  std::vector<int64_t> dims(data.begin(), data.begin() + axis);
  dims.insert(dims.end(), indices.begin(), indices.end());
  dims.insert(dims.end(), data.begin() + axis + 1, data.end());
  context.set_dims(0, dims);
  return {};
}

// data [before, bound, row bytes], indices [count] -> output [before, count, row bytes].
class Gather {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& data = *context.input(0);
    const Dims dims = dims_of(data);
    bound_ = dims[axis_];
    before_ = dims.count(0, axis_);
    count_ = context.input(1)->element_count;
    row_bytes_ = dims.count(axis_ + 1, dims.rank) * static_cast<int64_t>(byte_width(data.dtype));
    chunks_ = std::max<int64_t>(1, row_bytes_ / chunk_bytes);
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), row_bytes_ < 32 ? 4.0 : 1.5);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const Tiling::Range range = tiling_.range(row_bytes_ == 0 ? 0 : before_ * count_ * chunks_, begin, end);
    const auto* data = static_cast<const char*>(context.inputs[0]->data);
    auto* output = static_cast<char*>(context.outputs[0]->data);
    const heddle_tensor& indices = *context.inputs[1];
    if (chunks_ > 1) return copy_chunks(data, indices, output, range);
    switch (row_bytes_) {
      case 1:
        return copy_rows<uint8_t>(data, indices, output, range);
      case 2:
        return copy_rows<uint16_t>(data, indices, output, range);
      case 4:
        return copy_rows<uint32_t>(data, indices, output, range);
      case 8:
        return copy_rows<uint64_t>(data, indices, output, range);
      default:
        return copy_rows<void>(data, indices, output, range);
    }
  }

 private:
  // W: a row is one such element; void: row_bytes_ bytes.
  template <class W>
  Status copy_rows(const char* data, const heddle_tensor& indices, char* output, Tiling::Range range) const {
    int64_t position = range.first % std::max<int64_t>(count_, 1);
    const char* base = data + range.first / std::max<int64_t>(count_, 1) * bound_ * row_bytes_;
    for (int64_t row = range.first; row < range.last; ++row) {
      int64_t index = integer_at(indices, position);
      if (!resolve_index(&index, bound_)) return index_outside(integer_at(indices, position), bound_, axis_);
      if constexpr (std::is_void_v<W>)
        std::memcpy(output + row * row_bytes_, base + index * row_bytes_, static_cast<size_t>(row_bytes_));
      else
        reinterpret_cast<W*>(output)[row] = reinterpret_cast<const W*>(base)[index];
      if (++position == count_) position = 0, base += bound_ * row_bytes_;
    }
    return {};
  }
  Status copy_chunks(const char* data, const heddle_tensor& indices, char* output, Tiling::Range range) const {
    for (int64_t unit = range.first; unit < range.last; ++unit) {
      const int64_t row = unit / chunks_, chunk = unit % chunks_;
      int64_t index = integer_at(indices, row % count_);
      if (!resolve_index(&index, bound_)) return index_outside(integer_at(indices, row % count_), bound_, axis_);
      const int64_t first = row_bytes_ / chunks_ * chunk, last = chunk + 1 == chunks_ ? row_bytes_ : row_bytes_ / chunks_ * (chunk + 1);
      std::memcpy(output + row * row_bytes_ + first, data + (row / count_ * bound_ + index) * row_bytes_ + first,
                  static_cast<size_t>(last - first));
    }
    return {};
  }
  int axis_ = 0;
  int64_t bound_ = 0, before_ = 0, count_ = 0, row_bytes_ = 0, chunks_ = 1;
  Tiling tiling_;
};

// ---------------------------------------------------------------- GatherElements

Status infer_gather_elements(InferContext& context) {
  const Dims data = context.dims(0), indices = context.dims(1);
  int axis = 0;
  if (!normalize_axis(context.attributes.i("axis"), data.rank, &axis)) return axis_outside("axis", context.attributes.i("axis"), data.rank);
  bool fits = data.rank == indices.rank;
  for (int i = 0; fits && i < data.rank; ++i) fits = i == axis || indices[i] <= data[i];
  if (!fits)
    return invalid("indices " + dims_text(indices) + " must have data's rank and, but for axis " + std::to_string(axis) +
                   ", no larger extents than data " + dims_text(data));
  context.set_dims(0, indices);
  return {};
}

class GatherElements {
 public:
  Status create(const CreateContext& context) {
    normalize_axis(context.attributes.i("axis"), context.input(0)->rank, &axis_);
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), 8.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const;

 private:
  int axis_ = 0;
  Tiling tiling_;
};

Status GatherElements::run(const RunContext& context, int64_t begin, int64_t end) const {
  const heddle_tensor &data = *context.inputs[0], &indices = *context.inputs[1], &y = *context.outputs[0];
  const int rank = data.rank;
  const auto width = static_cast<int64_t>(byte_width(data.dtype)), index_width = static_cast<int64_t>(byte_width(indices.dtype));
  const auto gather = isa_index_loops().gather[width_index(width)][index_width == 8];
  const int64_t columns = indices.dims[rank - 1];
  const Tiling::Range range = tiling_.range(columns == 0 ? 0 : indices.element_count / columns, begin, end);
  int64_t strides[HEDDLE_MAX_RANK];
  dense_strides(dims_of(data), strides);
  const int64_t step = axis_ == rank - 1 ? 0 : 1;
  CancellationPoll poll(context);
  for (int64_t row = range.first; row < range.last; ++row) {
    int64_t base = 0, rest = row;
    for (int i = rank - 2; i >= 0; --i) {
      if (i != axis_) base += rest % indices.dims[i] * strides[i];
      rest /= indices.dims[i];
    }
    for (int64_t c = 0; c < columns;) {
      const int64_t count = std::min(columns - c, CancellationPoll::between / 4), first = row * columns + c;
      if (poll.stops(4 * count)) return cancelled();
      const int64_t inside = gather({static_cast<const char*>(data.data) + (base + c * step) * width,
                                     static_cast<const char*>(indices.data) + first * index_width,
                                     static_cast<char*>(y.data) + first * width, count, data.dims[axis_], strides[axis_], step});
      if (inside < count) return index_outside(integer_at(indices, first + inside), data.dims[axis_], axis_);
      c += count;
    }
  }
  return {};
}

// ---------------------------------------------------------------- GatherND

Status infer_gather_nd(InferContext& context) {
  const Dims data = context.dims(0), indices = context.dims(1);
  const int64_t batch = context.attributes.i("batch_dims");
  if (data.rank < 1 || indices.rank < 1) return invalid("data and indices need at least one dimension");
  if (batch < 0 || batch >= std::min(data.rank, indices.rank))
    return invalid("batch_dims is " + std::to_string(batch) + " for data " + dims_text(data) + " and indices " + dims_text(indices));
  const int b = static_cast<int>(batch);
  for (int i = 0; i < b; ++i)
    if (data[i] != indices[i]) return invalid("batch dimension " + std::to_string(i) + " differs between data and indices");
  const int64_t depth = indices[-1];
  if (depth < 1 || depth > data.rank - b)
    return invalid("the last dimension of indices is " + std::to_string(depth) + ", expected 1 to " + std::to_string(data.rank - b));
  std::vector<int64_t> dims(indices.begin(), indices.end() - 1);
  dims.insert(dims.end(), data.begin() + b + depth, data.end());
  HEDDLE_PLUGIN_CHECK(check_rank(dims.size()));
  context.set_dims(0, dims);
  return {};
}

class GatherND {
 public:
  Status create(const CreateContext& context) {
    batch_ = static_cast<int>(context.attributes.i("batch_dims"));
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor &data = *context.input(0), &indices = *context.input(1);
    depth_ = static_cast<int>(dims_of(indices)[-1]);
    slice_bytes_ = dims_of(data).count(batch_ + depth_, data.rank) * static_cast<int64_t>(byte_width(data.dtype));
    batches_ = dims_of(data).count(0, batch_);
    picks_ = indices.element_count / std::max(depth_, 1);
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), slice_bytes_ < 32 ? 8.0 : 1.5);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &data = *context.inputs[0], &indices = *context.inputs[1];
    const Tiling::Range range = tiling_.range(slice_bytes_ == 0 ? 0 : picks_, begin, end);
    const int64_t picks_per_batch = picks_ / std::max<int64_t>(batches_, 1);
    CancellationPoll poll(context);
    for (int64_t pick = range.first; pick < range.last; ++pick) {
      int64_t at = pick / picks_per_batch;
      for (int k = 0; k < depth_; ++k) {
        const int64_t bound = data.dims[batch_ + k];
        int64_t index = integer_at(indices, pick * depth_ + k);
        if (!resolve_index(&index, bound)) return index_outside(integer_at(indices, pick * depth_ + k), bound, batch_ + k);
        at = at * bound + index;
      }
      copy_cancellable(static_cast<char*>(context.outputs[0]->data) + pick * slice_bytes_,
                       static_cast<const char*>(data.data) + at * slice_bytes_, slice_bytes_, poll);
      if (poll.stopped()) break;
    }
    return poll.status();
  }

 private:
  int batch_ = 0, depth_ = 1;
  int64_t slice_bytes_ = 0, batches_ = 1, picks_ = 0;
  Tiling tiling_;
};

constexpr int64_t zero_index = 0, one_index = 1;

// Where rows are taken along axis 0 the gradient is rows: the indices at which they were taken, and dY of each. Along another axis, that
// axis is moved to the front and back again.
Status gather_gradient(GradientContext& g) {
  const int rank = g.input_type(0).rank, index_rank = g.input_type(1).rank;
  const int64_t axis = g.attributes().i("axis") + (g.attributes().i("axis") < 0 ? rank : 0);
  GradientValue dy = g.dy(0);
  if (axis > 0) {
    std::vector<int64_t> to_front, of_data, back(static_cast<size_t>(rank));
    for (int i = 0; i < index_rank; ++i) to_front.push_back(axis + i);
    of_data.push_back(axis);
    for (int64_t i = 0; i < rank; ++i) {
      if (i == axis) continue;
      to_front.push_back(i < axis ? i : i + index_rank - 1);
      of_data.push_back(i);
    }
    for (size_t i = 0; i < of_data.size(); ++i) back[static_cast<size_t>(of_data[i])] = static_cast<int64_t>(i);
    dy = g.emit("Transpose", {dy}, {{"perm", to_front}});
    const GradientValue extents = g.emit("Gather", {shape_of(g, g.x(0)), g.ints(of_data)});
    const GradientValue zeros = zeros_of(g, extents, dy);
    const GradientValue tuples = g.emit("Unsqueeze", {cast(g, g.x(1), HEDDLE_I64), g.ints({-1})});
    const GradientValue sums = g.emit("ScatterND", {zeros, tuples, dy}, {{"reduction", "add"}});
    g.give(0, g.emit("Transpose", {sums}, {{"perm", back}}));
    return {};
  }
  if (index_rank == 1) {
    g.give_rows(0, g.x(1), dy);
    return {};
  }
  const GradientValue indices = reshape(g, g.x(1), g.ints({-1}));
  const GradientValue row = g.emit("Slice", {shape_of(g, g.x(0)), g.ints({1}), g.ints({INT64_MAX})});
  g.give_rows(0, indices, reshape(g, dy, g.emit("Concat", {shape_of(g, indices), row}, {{"axis", 0}})));
  return {};
}

Status gather_elements_gradient(GradientContext& g) {
  g.give(0, g.emit("ScatterElements", {zeros_like(g, g.x(0)), g.x(1), g.dy(0)},
                   {GradientAttribute("axis", g.attributes().i("axis")), {"reduction", "add"}}));
  return {};
}

// Merges the batch dimensions into one, whose position comes first in every tuple.
Status gather_nd_gradient(GradientContext& g) {
  const int64_t batch_dims = g.attributes().i("batch_dims");
  if (batch_dims == 0) {
    g.give(0, g.emit("ScatterND", {zeros_like_input(g, 0), g.x(1), g.dy(0)}, {{"reduction", "add"}}));
    return {};
  }
  const auto joined = [&](std::initializer_list<GradientValue> parts) { return g.emit("Concat", parts, {{"axis", 0}}); };
  const auto extents = [&](GradientValue of, int64_t start, int64_t end) {
    return g.emit("Shape", {of}, {{"start", start}, {"end", end}});
  };
  const int64_t data_rank = g.input_type(0).rank, index_rank = g.input_type(1).rank;
  const GradientValue data = g.x(0), indices = g.x(1);
  const GradientValue batches = g.emit("ReduceProd", {extents(data, 0, batch_dims)});
  const GradientValue picks = g.emit("ReduceProd", {extents(indices, batch_dims, index_rank - 1)});
  const GradientValue depth = extents(indices, index_rank - 1, index_rank);
  const GradientValue tuples = reshape(g, indices, joined({batches, picks, depth}));
  const GradientValue none = g.ints({}), first = g.constant(HEDDLE_I64, {}, &zero_index), step = g.constant(HEDDLE_I64, {}, &one_index);
  const GradientValue counted = g.emit("Unsqueeze", {g.emit("Range", {first, reshape(g, batches, none), step}), g.ints({1, 2})});
  const GradientValue places = g.emit("Expand", {counted, joined({batches, picks, g.ints({1})})});
  const GradientValue zeros = zeros_of(g, joined({batches, extents(data, batch_dims, data_rank)}), g.dy(0));
  const int64_t kept = g.output_type(0).rank - (index_rank - 1);
  const GradientValue row = kept == 0 ? GradientValue() : extents(data, data_rank - kept, data_rank);
  const GradientValue shape = row ? joined({batches, picks, row}) : joined({batches, picks});
  const GradientValue sums =
      g.emit("ScatterND", {zeros, g.emit("Concat", {places, tuples}, {{"axis", 2}}), reshape(g, g.dy(0), shape)}, {{"reduction", "add"}});
  g.give(0, reshape(g, sums, shape_of(g, data)));
  return {};
}

}  // namespace

void add_gather(Builder& plugin) {
  plugin.add(Op("Gather", "", 13)
                 .doc("Takes the slices of data at indices along an axis. Negative indices count from the end.")
                 .formula("output[..., i..., ...] = data[..., indices[i...], ...]")
                 .shapes("output has the dims of data, with those of indices in place of the axis")
                 .in("data")
                 .in("indices", index_dtypes, nullptr)
                 .indexes("data", -1)
                 .out("output")
                 .attribute("axis", 0)
                 .infer(infer_gather)
                 .gradient<gather_gradient>()
                 .cpu<Gather>()
                 .example("f32[3,2] = 1 2 3 4 5 6, i64[2] = 2 -3 -> f32[2,2] = 5 6 1 2", "ONNX Runtime")
                 .example("f32[2,3] = 1 2 3 4 5 6, i32[1,2] = 2 0; axis=1 -> f32[2,1,2] = 3 1 6 4", "ONNX Runtime")
                 .example("i32[3] = 1 0 1, i64[] = 1 -> i32[] = 0", "ONNX Runtime"));
  plugin.add(Op("GatherElements", "", 13)
                 .doc("Takes one element of data for each index, which replaces its own position along the axis.")
                 .formula("output[i][j] = data[indices[i][j]][j], for axis 0")
                 .shapes("output has the dims of indices")
                 .in("data")
                 .in("indices", index_dtypes, nullptr)
                 .indexes("data", -1)
                 .out("output")
                 .attribute("axis", 0)
                 .infer(infer_gather_elements)
                 .gradient<gather_elements_gradient>()
                 .cpu<GatherElements>()
                 .example("f32[2,2] = 1 2 3 4, i64[2,2] = 0 0 1 0; axis=1 -> f32[2,2] = 1 1 4 3", "ONNX Runtime")
                 .example("i32[3,2] = 1 0 0 1 1 1, i32[2,2] = 1 2 -1 0 -> i32[2,2] = 0 1 1 0", "ONNX Runtime"));
  plugin.add(Op("GatherND", "", 13)
                 .doc("Takes slices of data at the tuples that the last axis of indices holds.")
                 .shapes("output has the dims of indices without the last, then those of data after the axes that a tuple covers")
                 .in("data")
                 .in("indices", dtypes<int64_t>(), nullptr)
                 .out("output")
                 .attribute("batch_dims", 0)
                 .infer(infer_gather_nd)
                 .gradient<gather_nd_gradient>()
                 .cpu<GatherND>()
                 .example("f32[2,3] = 1 2 3 4 5 6, i64[2,2] = 0 0 1 -1 -> f32[2] = 1 6", "ONNX Runtime")
                 .example("i32[2,2,2] = 1 0 0 1 1 1 0 0, i64[2,1] = 1 0; batch_dims=1 -> i32[2,2] = 0 1 1 1", "ONNX Runtime"));
}

}  // namespace heddle::cpu
