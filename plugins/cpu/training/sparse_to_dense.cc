// SparseToDense: rows that indices name, written out among rows of zeros, as Caffe2 defines it. Rows of one index are added up in the order
// of indices, whatever the number of threads: a tile owns a range of the output's elements, and reads all indices to find them.
#include <algorithm>
#include <string>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

struct DensePorts {
  static constexpr uint32_t indices = 0, values = 1, like = 2;
};

// ---------------------------------------------------------------- how many rows there are

// The least and the greatest of the indices read so far.
struct IndexRange {
  int64_t least = 0, greatest = -1;  // no index yet

  void look_at(const heddle_tensor& indices, int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t index = integer_at(indices, i);
      least = std::min(least, index);
      greatest = std::max(greatest, index);
    }
  }
};

// The error of the first index that is no row of `like` (null: it is absent, and only indices that can be no row at all are outside).
Status not_a_row(const heddle_tensor& indices, const heddle_tensor* like) {
  const int64_t rows = like ? like->dims[0] : INT64_MAX;
  int64_t position = 0;
  while (integer_at(indices, position) >= 0 && integer_at(indices, position) < rows) ++position;
  const int64_t index = integer_at(indices, position);
  const std::string text = "index " + std::to_string(index) + " at position " + std::to_string(position);
  if (like) return invalid(text + " is outside [0, " + std::to_string(rows) + "), the rows of like");
  return invalid(text + (index < 0 ? " is negative" : " asks for more rows than there can be"));
}

// Finds the number of rows. `range`: of all indices.
Status count_rows(const heddle_tensor& indices, const IndexRange& range, const heddle_tensor* like, int64_t* rows) {
  const int64_t most = like ? like->dims[0] : INT64_MAX;
  if (range.least < 0 || range.greatest >= most) return not_a_row(indices, like);
  *rows = like ? most : range.greatest + 1;
  return {};
}

Status infer_sparse_to_dense(InferContext& context) {
  const Dims indices = context.dims(DensePorts::indices), values = context.dims(DensePorts::values);
  if (indices.rank != 1) return not_one_dimensional("indices", indices);
  if (values.rank < 1 || values[0] != indices[0])
    return invalid("values has shape " + dims_text(values) + ", expected a row for each of " + std::to_string(indices[0]) + " indices");
  std::vector<int64_t> dims = vector_of(values);
  if (context.has_input(DensePorts::like)) {
    if (context.dims(DensePorts::like).rank < 1) return invalid("like is a scalar, expected a tensor of as many rows as the output has");
    dims[0] = context.dims(DensePorts::like)[0];
  } else if (context.known(DensePorts::indices)) {
    IndexRange range;
    range.look_at(context.input(DensePorts::indices), 0, indices[0]);
    HEDDLE_PLUGIN_CHECK(count_rows(context.input(DensePorts::indices), range, nullptr, dims.data()));
  } else {
    context.set_dynamic(0, values.rank);  // an index may be of any size, so there is no bound
    return {};
  }
  context.set_dims(0, dims);
  return {};
}

// ---------------------------------------------------------------- the kernel

constexpr double moves_of_a_value = 3;  // it is read, and so is the sum, which is written again

heddle_status sparse_to_dense_cost(const heddle_infer_context* context, heddle_cost* cost) {
  const heddle_tensor& values = *context->inputs[DensePorts::values];
  cost->flops = static_cast<double>(values.element_count);
  // So far the host has counted every tensor once. Nothing of like is read.
  cost->bytes += (moves_of_a_value - 1) * static_cast<double>(values.byte_size);
  if (context->input_count > DensePorts::like && context->inputs[DensePorts::like])
    cost->bytes -= static_cast<double>(context->inputs[DensePorts::like]->byte_size);
  return HEDDLE_OK;
}

// Writes elements `part` of the output, whose rows have `length` of them.
template <class T>
void add_up(const heddle_tensor& indices, const T* values, int64_t length, Tiling::Range part, T* dense, CancellationPoll& poll) {
  fill_cancellable(dense + part.first, part.last - part.first, T{}, poll);
  constexpr int64_t stretch = int64_t{1} << 16;  // elements between two checks for cancellation
  for (int64_t i = 0; i < indices.element_count && !poll.stops(2); ++i) {
    const int64_t row = integer_at(indices, i) * length, last = std::min(part.last, row + length);
    const T* const added = values + i * length;
    for (int64_t k = std::max(part.first, row); k < last;) {
      const int64_t end = std::min(last, k + stretch);
      if (poll.stops((end - k) / 2)) return;
      for (; k < end; ++k) dense[k] = from_arithmetic<T>(wrapping_add(to_arithmetic(dense[k]), to_arithmetic(added[k - row])));
    }
  }
}

class SparseToDense {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor &indices = *context.input(DensePorts::indices), &values = *context.input(DensePorts::values);
    const heddle_tensor& dense = *context.output(0);
    const bool is_dynamic = (dense.flags & HEDDLE_TENSOR_DYNAMIC) != 0;
    const double written = is_dynamic ? 0 : static_cast<double>(dense.byte_size), looked_at = static_cast<double>(indices.byte_size);
    const double moved = written + moves_of_a_value * static_cast<double>(values.byte_size);
    tiling_ = Tiling();
    // A dynamic output is allocated by one tile. Otherwise there are several tiles if reading all indices is little work beside a tile's
    // share of the rest, or if one tile would be too large.
    if (!is_dynamic) tiling_.plan(context, looked_at + moved, moved >= 16 * looked_at ? 1.5 : 0);
    context.set_cost_ns(30.0 + (2 * looked_at + 1.5 * moved) / bytes_per_ns);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &indices = *context.inputs[DensePorts::indices], &values = *context.inputs[DensePorts::values];
    CancellationPoll poll(context);
    // Each tile checks all indices before it writes anything, so that no tile writes if one of them is wrong.
    Extents dims;
    HEDDLE_PLUGIN_CHECK(find_extents(context, poll, &dims));
    void* data = nullptr;
    HEDDLE_PLUGIN_CHECK(place(context, dims, &data));
    if (is_empty(dims.dims())) return {};
    const int64_t length = dims.dims().count(1, dims.rank);
    const Tiling::Range part = tiling_.range(dims.values[0] * length, begin, end);
    with_dtype(values.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      add_up(indices, static_cast<const T*>(values.data), length, part, static_cast<T*>(data), poll);
    });
    return poll.status();
  }

 private:
  static Status find_extents(const RunContext& context, CancellationPoll& poll, Extents* dims) {
    const heddle_tensor &indices = *context.inputs[DensePorts::indices], &values = *context.inputs[DensePorts::values];
    const heddle_tensor* const like = context.input_count > DensePorts::like ? context.inputs[DensePorts::like] : nullptr;
    constexpr int64_t stretch = int64_t{1} << 16;
    IndexRange range;
    for (int64_t first = 0; first < indices.element_count && !poll.stops(stretch); first += stretch)
      range.look_at(indices, first, std::min(indices.element_count, first + stretch));
    if (poll.stopped()) return cancelled();
    int64_t rows = 0;
    HEDDLE_PLUGIN_CHECK(count_rows(indices, range, like, &rows));
    dims->push(rows);
    for (int i = 1; i < values.rank; ++i) dims->push(values.dims[i]);
    return {};
  }
  // With an extent of 0 the others may be of any size.
  static bool is_empty(Dims dims) { return std::count(dims.begin(), dims.end(), 0) > 0; }
  // Finds the output's memory: it was planned, or the host allocates it now.
  static Status place(const RunContext& context, const Extents& dims, void** data) {
    heddle_tensor& dense = *context.outputs[0];
    if ((dense.flags & HEDDLE_TENSOR_DYNAMIC) == 0) {
      *data = dense.data;
      return check_planned({{"indices", context.inputs[DensePorts::indices]}}, dense, [&](Extents* to) {
        *to = dims;
        return Status();
      });
    }
    *data = allocate_output(context, 0, dims.dims());
    if (*data || is_empty(dims.dims())) return {};
    const std::string greatest = std::to_string(dims.values[0] - 1);
    return {HEDDLE_ERROR_OUT_OF_MEMORY,
            "no memory for an output of shape " + dims_text(dims.dims()) + ", which index " + greatest + " needs"};
  }

  Tiling tiling_;
};

}  // namespace

void add_sparse_to_dense(Builder& plugin) {
  plugin.add(Op("SparseToDense", "heddle")
                 .doc("Adds each row of values to a row of zeros where its index says, in the order of indices. None of the indices counts "
                      "from the end.")
                 .formula("dense[indices[i]] += values[i]")
                 .shapes("dense has the dims of values, with as many rows as like has or, without it, as the greatest index needs")
                 .in("indices", index_dtypes, nullptr)
                 .in("values", numeric_dtypes)
                 .optional("like", any_dtype, nullptr)
                 .not_differentiable()
                 .out("dense", {}, numeric_dtypes)
                 .infer(infer_sparse_to_dense)
                 .gradient("Gather", {"ddense", "indices"}, {"dvalues"}, "")
                 .cost(sparse_to_dense_cost)
                 .cpu<SparseToDense>()
                 .kernel_flags(HEDDLE_KERNEL_DYNAMIC_OUTPUTS)
                 .example("i64[3] = 2 0 2, f32[3,2] = 1 1 2 2 3 3, f32[4] = 0 -> f32[4,2] = 2 2 0 0 4 4 0 0", "by hand")
                 .example("i64[3] = 2 0 2, f32[3,2] = 1 1 2 2 3 3 -> f32[3,2] = 2 2 0 0 4 4", "by hand")
                 .example("i32[2] = 1 1, i32[2] = 5 -7, bool[3,2] = 0 -> i32[3] = 0 -2 0", "by hand"));
}

}  // namespace heddle::cpu
