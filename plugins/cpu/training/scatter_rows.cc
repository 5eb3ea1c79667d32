// Rows of a table that are written or combined in place: ScatterAssign, ScatterWeightedSum, as Caffe2 defines them. Rows that no index
// names are unchanged. Several updates of one row take effect in the order of indices, whatever the number of threads: a tile owns the rows
// that hash to it (row_groups.h).
#include <algorithm>
#include <cstring>

#include "families.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/scalar.h"
#include "support/cpu_api.h"
#include "training/applied_update.h"
#include "training/row_groups.h"
#include "vector/prefetch.h"

namespace heddle::cpu {
namespace {

constexpr double rows_touched = 3;  // for each index: its values are read, the row is read and written

// The ports of ScatterAssign; those of ScatterWeightedSum are w, w_weight, indices, and pairs of values and their weight.
struct AssignPorts {
  static constexpr uint32_t indices = 1, values = 2, inputs_of_values = 1, apply = 3;
};
struct WeightedPorts {
  static constexpr uint32_t indices = 2, values = 3, inputs_of_values = 2;
};

template <class Ports>
heddle_status scatter_cost(const heddle_infer_context* context, heddle_cost* cost) {
  cost->bytes = row_update_bytes(*context->inputs[0], *context->inputs[Ports::indices], rows_touched);
  return HEDDLE_OK;
}

// How a row of values changes one of the table.
struct AssignRow {
  explicit AssignRow(const RunContext& context) : values(static_cast<const char*>(context.inputs[AssignPorts::values]->data)) {}
  static constexpr bool last_alone = true;
  void operator()(char* row, int64_t position, int64_t bytes) const {
    std::memcpy(row, values + position * bytes, static_cast<size_t>(bytes));
  }
  const char* const values;
};
template <class T>
struct WeightedSumOfRows {
  explicit WeightedSumOfRows(const RunContext& context) : context_(context), weight_(factor(1)) {}
  static constexpr bool last_alone = false;
  void operator()(char* row, int64_t position, int64_t bytes) const {
    T* const w = reinterpret_cast<T*>(row);
    const int64_t length = bytes / static_cast<int64_t>(sizeof(T));
    for (int64_t k = 0; weight_ != 1 && k < length; ++k) w[k] *= weight_;
    for (uint32_t i = WeightedPorts::values; i < context_.input_count; i += WeightedPorts::inputs_of_values) {
      const T* const values = static_cast<const T*>(context_.inputs[i]->data) + position * length;
      const T weight = factor(i + 1);
      for (int64_t k = 0; k < length; ++k) w[k] += weight * values[k];
    }
  }

 private:
  T factor(uint32_t input) const { return *static_cast<const T*>(context_.inputs[input]->data); }

  const RunContext& context_;
  const T weight_;
};

template <class Ports>
class ScatterRows {
 public:
  Status prepare(PrepareContext& context) {
    const heddle_tensor& w = *context.input(0);
    rows_ = w.dims[0];
    row_bytes_ = dims_of(w).count(1, w.rank) * static_cast<int64_t>(byte_width(w.dtype));
    return plan_row_update(context, *context.input(Ports::indices), row_bytes_, rows_touched, 0, &tiles_);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if constexpr (std::is_same_v<Ports, AssignPorts>) return scatter(context, begin, end, AssignRow(context));
    if (context.outputs[0]->dtype == HEDDLE_F64) return scatter(context, begin, end, WeightedSumOfRows<double>(context));
    return scatter(context, begin, end, WeightedSumOfRows<float>(context));
  }

 private:
  template <class Row>
  Status scatter(const RunContext& context, int64_t begin, int64_t end, const Row& change) const {
    CancellationPoll poll(context);
    RowGroups groups(thread_scratch<char>(context), *context.inputs[Ports::indices], rows_);
    const OwnedRows owned(begin, end, tiles_);
    HEDDLE_PLUGIN_CHECK(groups.find(owned, poll));
    copy_owned_rows(*context.inputs[0], *context.outputs[0], rows_, owned, poll);
    char* const w = static_cast<char*>(context.outputs[0]->data);
    constexpr int64_t ahead = 8;
    for (int64_t group = 0; group < groups.count(); ++group) {
      if (group + ahead < groups.count()) prefetch_row(w + groups.row(group + ahead) * row_bytes_, row_bytes_);
      char* const row = w + groups.row(group) * row_bytes_;
      for (int32_t at = groups.first(group); at != RowGroups::none; at = groups.behind(at)) {
        if (poll.stops(row_bytes_ / 4 + 1)) return poll.status();
        if (!Row::last_alone || groups.behind(at) == RowGroups::none) change(row, at, row_bytes_);
      }
    }
    return poll.status();
  }

  int64_t rows_ = 0, row_bytes_ = 0, tiles_ = 1;
};

template <class Ports>
Status infer_scatter_rows(InferContext& context) {
  const Dims w = context.dims(0), named = context.dims(Ports::indices);
  if (w.rank < 1) return invalid("w is a scalar, expected a table of rows");
  if (named.rank != 1) return invalid("indices has shape " + dims_text(named) + ", expected one dimension");
  if constexpr (Ports::inputs_of_values == 2) HEDDLE_PLUGIN_CHECK(expect_scalar(context, 1));
  if ((context.input_count() - Ports::values) % Ports::inputs_of_values != 0)
    return invalid("the last values have no weight: indices are followed by pairs of values and their weight");
  std::vector<int64_t> expected = vector_of(w);
  expected[0] = named[0];
  if constexpr (Ports::inputs_of_values == 1) HEDDLE_PLUGIN_CHECK(check_apply(context, AssignPorts::apply));
  const uint32_t end = Ports::inputs_of_values == 1 ? Ports::values + 1 : context.input_count();
  for (uint32_t i = Ports::values; i < end; i += Ports::inputs_of_values) {
    HEDDLE_PLUGIN_CHECK(expect_shape(context, i, expected, "a row of w for each index"));
    if constexpr (Ports::inputs_of_values == 2) HEDDLE_PLUGIN_CHECK(expect_scalar(context, i + 1, "the weight of values"));
  }
  context.set_dims(0, w);
  return {};
}

}  // namespace

void add_scatter_rows(Builder& plugin) {
  constexpr heddle_dtype_set floats = dtypes<float, double>();
  plugin.add(Op("ScatterAssign", "heddle")
                 .doc("Writes values to the rows of w that indices name. Of several values for one row the last stays. With apply false "
                      "nothing is changed.")
                 .formula("w[indices[i]] = values[i]")
                 .in("w")
                 .in("indices", index_dtypes, nullptr)
                 .indexes("w", 0)
                 .in("values")
                 .optional("apply", dtypes<bool>(), nullptr)
                 .out("new_w")
                 .updates("new_w", "w")
                 .infer(infer_scatter_rows<AssignPorts>)
                 .cost(scatter_cost<AssignPorts>)
                 .cpu<AppliedUpdate<ScatterRows<AssignPorts>, AssignPorts::apply>>()
                 .example("i32[2] = 1 2, i32[3] = -1 0 -1, i32[3] = 5 6 7, bool[] = 0 -> i32[2] = 1 2", "by hand")
                 .example("f32[3,2] = 1 2 3 4 5 6, i64[2] = 2 0, f32[2,2] = 7 8 9 10 -> f32[3,2] = 9 10 3 4 7 8", "by hand")
                 .example("i32[2] = 1 2, i32[3] = -1 0 -1, i32[3] = 5 6 7 -> i32[2] = 6 7", "by hand"));
  plugin.add(
      Op("ScatterWeightedSum", "heddle")
          .doc("Scales the rows of w that indices name, and adds rows of values with their weights, of which pairs follow indices. A row "
               "that is named several times is changed once for each index, in their order: w_weight scales it each time.")
          .formula("w[indices[i]] = w_weight w[indices[i]] + weight values[i] + ...")
          .in("w", floats)
          .in("w_weight", floats)
          .in("indices", index_dtypes, nullptr)
          .indexes("w", 0)
          .variadic("values_and_weights", floats)
          .out("new_w", {}, floats)
          .updates("new_w", "w")
          .infer(infer_scatter_rows<WeightedPorts>)
          .cost(scatter_cost<WeightedPorts>)
          .cpu<ScatterRows<WeightedPorts>>()
          .example("f32[2,2] = 1 2 3 4, f32[] = 0.5, i64[1] = 1, f32[1,2] = 10 20, f32[] = 2 -> f32[2,2] = 1 2 21.5 42", "by hand")
          .example("f32[2] = 9 3, f32[] = 0.5, i64[2] = 1 1, f32[2] = 6 3, f32[] = 1 -> f32[2] = 9 6.75", "by hand")
          .example("f64[2] = 1 2, f64[] = 1, i32[1] = 0, f64[1] = 4, f64[] = 0.5, f64[1] = 8, f64[] = -1 -> f64[2] = -5 2", "by hand"));
}

}  // namespace heddle::cpu
