// The gradients of LayerNormalization and RMSNormalization, in one pass over the rows.
//
// Tiles are ranges of rows. Each tile sums the gradients of scale and bias from its rows in f64, column by column; finish adds these sums
// in the order of tiles, so the result does not depend on the number of threads.
#include <algorithm>

#include "families.h"
#include "normalization/normalization_gradient_work.h"
#include "normalization/normalization_shapes.h"
#include "normalization/normalization_work.h"
#include "shared/input_shapes.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cost.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

template <bool centred>
class RowNormalizationGradient {
 public:
  Status create(const CreateContext& context) {
    axis_ = context.attributes.i("axis");
    epsilon_ = context.attributes.f("epsilon");
    return centred ? Status() : read_stash_type(context.attributes, float_dtypes, &stash_);
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(1);
    HEDDLE_PLUGIN_CHECK(row_shape(dims_of(x), axis_, &shape_));
    tiling_.plan(context, static_cast<int64_t>(2 * x.byte_size), 2);
    tiles_ = context.tiles();
    const auto columns = static_cast<uint64_t>(shape_.columns);
    const bool sums = (context.output_count() > 1 && context.output(1)) || (context.output_count() > 2 && context.output(2));
    context.set_scratch(sums ? static_cast<uint64_t>(parts()) * columns * 2 * sizeof(double) : 0,
                        columns * 3 * byte_width(working_dtype(x.dtype, stash_)) + 64);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    if (writes_nothing(context) || shape_.columns == 0) return {};
    CancellationPoll poll(context);
    with_working(working_dtype(context.inputs[1]->dtype, stash_), [&](auto zero) {
      for (int64_t tile = begin; tile < end && !poll.stopped(); ++tile) run_tile<decltype(zero)>(context, tile, poll);
    });
    return poll.status();
  }
  Status finish(const RunContext& context) const {
    if (!sums_parameters(context)) return {};
    double* sums = step_scratch<double>(context);
    const int64_t columns = shape_.columns;
    CancellationPoll poll(context);
    for (int64_t part = 1; part < parts() && !poll.stops(2 * columns); ++part)
      for (int64_t i = 0; i < 2 * columns; ++i) sums[i] += sums[part * 2 * columns + i];
    for (uint32_t o = 1; o < context.output_count; ++o)
      if (context.outputs[o]) store_parameter(sums + (o - 1) * columns, *context.outputs[o]);
    return poll.status();
  }

 private:
  // The number of tiles that have rows.
  int64_t parts() const { return std::min(tiles_, shape_.rows); }
  static bool sums_parameters(const RunContext& context) {
    return (context.output_count > 1 && context.outputs[1]) || (context.output_count > 2 && context.outputs[2]);
  }
  // A parameter that is repeated along the columns gets the sum over its columns.
  void store_parameter(double* sums, heddle_tensor& parameter) const {
    const int64_t count = parameter.element_count;
    if (parts() == 0 || shape_.columns == 0) {
      const double zero = 0;
      for (int64_t i = 0; i < count; ++i) convert(HEDDLE_F64, &zero, parameter.dtype, at(parameter, i), 1);
      return;
    }
    for (int64_t i = count; i < shape_.columns; ++i) sums[i % count] += sums[i];
    convert(HEDDLE_F64, sums, parameter.dtype, parameter.data, count);
  }
  static double statistic(const RunContext& context, uint32_t input, int64_t row) {
    return input < context.input_count && context.inputs[input] ? parameter(*context.inputs[input], row) : 0;
  }

  template <class T>
  void run_tile(const RunContext& context, int64_t tile, CancellationPoll& poll) const {
    const int64_t columns = shape_.columns;
    const auto [first, last] = tiling_.range(shape_.rows, tile, tile + 1);
    if (first == last) return;
    double* sums = nullptr;
    if (sums_parameters(context)) {
      sums = step_scratch<double>(context) + (shape_.rows < tiles_ ? first : tile) * 2 * columns;
      fill_cancellable(sums, 2 * columns, 0.0, poll);
    }
    T* buffer = thread_scratch<T>(context);
    const T* scale = parameter_row(context.inputs[2], columns, buffer);
    const auto count = static_cast<double>(columns);
    for (int64_t r = first; r < last && !poll.stops(4 * columns); ++r) {
      const T* dy = as_working(*context.inputs[0], r * columns, columns, buffer + columns);
      const T* x = as_working(*context.inputs[1], r * columns, columns, buffer + 2 * columns);
      T* dx = target(*context.outputs[0], r * columns, buffer + columns);
      const Moments<T> m = centred ? row_moments(x, columns) : Moments<T>{0, 0, row_squares(x, columns) / count};
      const double inverse = 1 / std::sqrt(m.variance + epsilon_), cube = inverse * inverse * inverse;
      double sum = 0, products = 0;
      gradient_sums(x, dy, scale, columns, m.shift, &sum, &products);
      if (sums) gradient_add_row(x, dy, columns, m.shift, static_cast<T>(inverse), static_cast<T>(-m.rest * inverse), sums, sums + columns);
      if (poll.stops(2 * columns)) return;
      double slope = -cube * (products - m.rest * sum) / count, offset = 0;
      if (centred) {
        slope -= cube * statistic(context, 4, r) / count;
        offset = statistic(context, 3, r) / count - slope * m.rest;
      }
      gradient_apply(x, dy, scale, dx, columns, gradient_numbers(m.shift, 1, centred ? sum / count : 0, inverse, slope, offset));
      store_working(*context.outputs[0], r * columns, columns, dx);
    }
  }

  int64_t axis_ = -1, tiles_ = 1;
  double epsilon_ = 0;
  heddle_dtype stash_ = HEDDLE_F32;
  RowShape shape_;
  Tiling tiling_;
};

Status infer_row_normalization_gradient(InferContext& context) {
  const Dims x = context.dims(1);
  RowShape shape;
  HEDDLE_PLUGIN_CHECK(row_shape(x, context.attributes.i("axis"), &shape));
  HEDDLE_PLUGIN_CHECK(check_parameter("scale", context.dims(2), x, shape.columns));
  HEDDLE_PLUGIN_CHECK(expect_shape(context, 0, x, "that of X"));
  for (uint32_t i = 3; i < context.input_count(); ++i)
    if (context.has_input(i) && context.input(i).element_count != shape.rows)
      return invalid(std::string(context.op().inputs[i]->name) + " has shape " + dims_text(context.dims(i)) + ", expected " +
                     std::to_string(shape.rows) + " elements, the rows of " + dims_text(x));
  context.set_dims(0, x);
  context.set_dims(1, context.dims(2));
  context.set_dims(2, context.dims(2));
  return {};
}

template <bool centred>
Op row_normalization_gradient_operator(const char* name, const char* scale_variable) {
  Op op(name, "heddle");
  op.in("dY", float_dtypes).in("X", float_dtypes).in("scale", float_dtypes, scale_variable);
  if (centred) op.optional("dMean", float_dtypes, "U").optional("dInvStdDev", float_dtypes, "U");
  op.out("dX", {}, float_dtypes).optional_out("dscale", {}, float_dtypes, scale_variable);
  if (centred) op.optional_out("dB", {}, float_dtypes, scale_variable);
  op.attribute("axis", -1).attribute("epsilon", 1e-5);
  if (!centred) op.attribute("stash_type", 1);
  op.in_place("dX", "dY")
      .precision(HEDDLE_PRECISION_FULL)
      .infer(infer_row_normalization_gradient)
      .cost<per_input_element<16>>()
      .template cpu<RowNormalizationGradient<centred>>();
  return op;
}

}  // namespace

void add_normalization_row_gradient(Builder& plugin) {
  plugin.add(row_normalization_gradient_operator<true>("LayerNormalizationGradient", "T")
                 .doc("Computes the gradients of LayerNormalization's X, Scale and B.")
                 .shapes("dX has the dims of X, dscale and dB have those of scale")
                 .example("f32[1,2] = 1 0, f32[1,2] = 1 3, f32[2] = 2 1; epsilon=0 -> f32[1,2] = 0, f32[2] = -1 0, f32[2] = 1 0", "by hand")
                 .example("f32[2,2] = 1 0 0 2, f32[2,2] = -1 1 3 1, f32[1] = 2, f32[2,1] = 2 0, f32[2,1] = 0 4; epsilon=3 -> f32[2,2] = "
                          "1.375 0.625 -1 1, f32[1] = -1.5, f32[1] = 3",
                          "by hand"));
  plugin.add(
      row_normalization_gradient_operator<false>("RMSNormalizationGradient", "V")
          .doc("Computes the gradients of RMSNormalization's X and scale.")
          .shapes("dX has the dims of X, dscale has those of scale")
          .example("f32[1,2] = 1 0, f32[1,2] = 1 1, f32[2] = 2 1; epsilon=3 -> f32[1,2] = 0.875 -0.125, f32[2] = 0.5 0", "by hand")
          .example("f32[1,2] = 1 1, f32[1,2] = 2 -2, bf16[1] = 3; axis=0, epsilon=0, stash_type=11 -> f32[1,2] = 1.5 1.5, bf16[1] = 0",
                   "by hand"));
}

}  // namespace heddle::cpu
