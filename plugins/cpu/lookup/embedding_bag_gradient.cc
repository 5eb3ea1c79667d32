// The operators of which the gradients of EmbeddingBag and the SparseLengths operators are made: BagRows and BagWeightsGradient. Tiles are
// ranges of lookups, which are independent.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "lookup/bag_loops.h"
#include "lookup/lookup_cost.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/scalar.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"
#include "vector/prefetch.h"

namespace heddle::cpu {
namespace {

constexpr int64_t stretch = int64_t{1} << 16;  // elements of a row between two checks for cancellation

Status outside(const char* what, int64_t index, int64_t lookup, int64_t bound) {
  return invalid(std::string(what) + " " + std::to_string(index) + " of lookup " + std::to_string(lookup) + " is outside [0, " +
                 std::to_string(bound) + ")");
}
bool is_inside(int64_t index, int64_t bound) {
  return index >= 0 && index < bound;
}

// ---------------------------------------------------------------- BagRows

Status infer_bag_rows(InferContext& context) {
  const Dims values = context.dims(0), bags = context.dims(1);
  if (values.rank < 1) return invalid("values is a scalar, expected a row for each bag");
  if (bags.rank != 1) return invalid("bags has shape " + dims_text(bags) + ", expected one dimension");
  HEDDLE_PLUGIN_CHECK(expect_shape(context, 2, bags, "that of bags"));
  std::vector<int64_t> dims = vector_of(values);
  dims[0] = bags[0];
  context.set_dims(0, dims);
  return {};
}

class BagRows {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& values = *context.input(0);
    length_ = dims_of(values).count(1, values.rank);
    chunks_ = std::max<int64_t>(1, length_ / stretch);
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size), length_ < 8 ? 4.0 : 1.5);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &values = *context.inputs[0], &bags = *context.inputs[1];
    const heddle_tensor* const weights = context.input_count > 2 ? context.inputs[2] : nullptr;
    const Tiling::Range units = tiling_.range(bags.element_count * chunks_, begin, end);
    CancellationPoll poll(context);
    Status status;
    with_float(values.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (int64_t unit = units.first; unit < units.last && !poll.stops(8 + length_ / chunks_ / 4); ++unit) {
        const int64_t lookup = unit / chunks_, chunk = unit % chunks_, bag = integer_at(bags, lookup);
        if (!is_inside(bag, values.dims[0])) {
          status = outside("bag", bag, lookup, values.dims[0]);
          return;
        }
        const int64_t first = length_ / chunks_ * chunk, last = chunk + 1 == chunks_ ? length_ : first + length_ / chunks_;
        const T* const from = static_cast<const T*>(values.data) + bag * length_;
        T* const to = static_cast<T*>(context.outputs[0]->data) + lookup * length_;
        if (!weights) {
          std::copy(from + first, from + last, to + first);
          continue;
        }
        const auto weight = to_arithmetic(static_cast<const T*>(weights->data)[lookup]);
        for (int64_t i = first; i < last; ++i) to[i] = from_arithmetic<T>(to_arithmetic(from[i]) * weight);
      }
    });
    return status.ok() ? poll.status() : status;
  }

 private:
  int64_t length_ = 0, chunks_ = 1;
  Tiling tiling_;
};

// ---------------------------------------------------------------- BagWeightsGradient

Status infer_weights_gradient(InferContext& context) {
  const Dims table = context.dims(0), indices = context.dims(1), bags = context.dims(2), dy = context.dims(3);
  if (table.rank < 1) return invalid("the table is a scalar, expected rows");
  if (indices.rank != 1 || bags.rank != 1 || indices[0] != bags[0])
    return invalid("indices has shape " + dims_text(indices) + " and bags " + dims_text(bags) + ", expected the same one dimension");
  if (dy.rank != table.rank || !std::equal(table.begin() + 1, table.end(), dy.begin() + 1, dy.end()))
    return invalid("dY has shape " + dims_text(dy) + ", expected rows as those of the table " + dims_text(table));
  context.set_dims(0, indices);
  return {};
}

heddle_status weights_gradient_cost(const heddle_infer_context* context, heddle_cost* cost) {
  const LookupCost lookups(*context->inputs[0], *context->inputs[1]);
  cost->flops = 2 * lookups.elements;
  cost->bytes = lookups.bytes + bytes_of(*context->outputs[0]);
  for (const uint32_t other : {2, 3}) cost->bytes += static_cast<double>(context->inputs[other]->byte_size);
  return HEDDLE_OK;
}

class BagWeightsGradient {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor &table = *context.input(0), &indices = *context.input(1);
    length_ = dims_of(table).count(1, table.rank);
    const double row_bytes = static_cast<double>(length_) * static_cast<double>(byte_width(table.dtype));
    tiling_.plan(context, static_cast<double>(indices.element_count) * (row_bytes + 16), 2);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    Status status;
    with_float(context.inputs[0]->dtype, [&](auto tag) { status = run_as<typename decltype(tag)::type>(context, begin, end); });
    return status;
  }

 private:
  static constexpr int64_t ahead = 8;

  template <class T>
  Status run_as(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &table = *context.inputs[0], &indices = *context.inputs[1], &bags = *context.inputs[2], &dy = *context.inputs[3];
    const Tiling::Range range = tiling_.range(indices.element_count, begin, end);
    const int64_t rows = table.dims[0], bag_count = dy.dims[0];
    const T *const rows_of = static_cast<const T*>(table.data), *const dy_of = static_cast<const T*>(dy.data);
    T* const to = static_cast<T*>(context.outputs[0]->data);
    CancellationPoll poll(context);
    for (int64_t lookup = range.first; lookup < range.last && !poll.stops(8); ++lookup) {
      if (lookup + ahead < range.last)
        if (const int64_t later = integer_at(indices, lookup + ahead); is_inside(later, rows))
          prefetch_row(rows_of + later * length_, length_ * static_cast<int64_t>(sizeof(T)));
      const int64_t row = integer_at(indices, lookup), bag = integer_at(bags, lookup);
      if (!is_inside(row, rows)) return outside("index", row, lookup, rows);
      if (!is_inside(bag, bag_count)) return outside("bag", bag, lookup, bag_count);
      double sum = 0;
      for (int64_t first = 0; first < length_ && !poll.stops(std::min(stretch, length_ - first) / 4); first += stretch)
        sum += isa_bags().product[dtype_of<T>::id](rows_of + row * length_ + first, dy_of + bag * length_ + first,
                                                   std::min(stretch, length_ - first));
      to[lookup] = from_arithmetic<T>(sum);
    }
    return poll.status();
  }
  int64_t length_ = 0;
  Tiling tiling_;
};

}  // namespace

void add_embedding_bag_gradient(Builder& plugin) {
  plugin.add(Op("BagRows", "heddle")
                 .doc("Gives each lookup the row of values of its bag, times its weight. It is the gradient of EmbeddingBag by the rows of "
                      "the table.")
                 .formula("rows[i] = weights[i] values[bags[i]]")
                 .shapes("rows has the dims of values, with the extent of bags on axis 0")
                 .in("values", float_dtypes)
                 .in("bags", index_dtypes, nullptr)
                 .indexes("values", 0)
                 .optional("weights", float_dtypes)
                 .out("rows", {}, float_dtypes)
                 .infer(infer_bag_rows)
                 .cpu<BagRows>()
                 .example("f32[2,2] = 1 2 3 4, i32[3] = 0 0 1 -> f32[3,2] = 1 2 1 2 3 4", "by hand")
                 .example("f32[2,2] = 1 2 3 4, i64[3] = 0 0 1, f32[3] = 2 0.5 -1 -> f32[3,2] = 2 4 0.5 1 -3 -4", "by hand"));
  plugin.add(Op("BagWeightsGradient", "heddle")
                 .doc("Gives each lookup the dot product of its row of the table with its bag's row of dY. It is the gradient of "
                      "EmbeddingBag by the weights of lookups.")
                 .formula("dweights[i] = sum(table[indices[i]] dY[bags[i]])")
                 .shapes("dweights has the dims of indices")
                 .in("table", float_dtypes)
                 .in("indices", index_dtypes, nullptr)
                 .indexes("table", 0)
                 .in("bags", index_dtypes, nullptr)
                 .in("dY", float_dtypes)
                 .out("dweights", {}, float_dtypes)
                 .infer(infer_weights_gradient)
                 .cost(weights_gradient_cost)
                 .cpu<BagWeightsGradient>()
                 .example("f32[3,2] = 1 2 3 4 5 6, i64[3] = 2 0 2, i32[3] = 0 0 1, f32[2,2] = 1 1 1 -1 -> f32[3] = 11 3 -1", "by hand"));
}

}  // namespace heddle::cpu
