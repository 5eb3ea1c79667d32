// WeightedSum: tensors of one shape, each times a number, added up from the left, as Caffe2 defines it. 16-bit floats are added up as f32
// and rounded once.
#include <algorithm>
#include <string>

#include "families.h"
#include "shared/dims.h"
#include "shared/input_shapes.h"
#include "shared/scalar.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t inputs_of_a_term = 2;  // x0, w0, x1, w1, ...

Status infer_weighted_sum(InferContext& context) {
  const uint32_t inputs = context.input_count();
  if (inputs % inputs_of_a_term != 0) return invalid("the last x has no weight: inputs are pairs of an x and its weight");
  const Dims x0 = context.dims(0);
  for (uint32_t i = 0; i < inputs; i += inputs_of_a_term) {
    const std::string term = std::to_string(i / inputs_of_a_term);
    const Dims x = context.dims(i);
    if (!std::equal(x.begin(), x.end(), x0.begin(), x0.end()))
      return invalid("x" + term + " has shape " + dims_text(x) + ", expected " + dims_text(x0) + ", that of x0");
    HEDDLE_PLUGIN_CHECK(expect_scalar(context, i + 1, ("w" + term).c_str()));
  }
  context.set_dims(0, x0);
  return {};
}

void weighted_sum_cost(CostContext& context) {
  double terms = 0;
  while (context.has_input(static_cast<uint32_t>(terms) * inputs_of_a_term)) ++terms;
  context.set_flops((2 * terms - 1) * context.output_elements(0));
}

// Computes the sums of all terms, for one block of elements after the other. All inputs of a block are read before its output is written,
// so that the output may be the memory of x0.
template <class T>
void add_terms(const RunContext& context, Tiling::Range range) {
  constexpr int64_t block = 1024;
  FloatSum<T> sums[block];
  T* const y = static_cast<T*>(context.outputs[0]->data);
  for (int64_t first = range.first; first < range.last; first += block) {
    const int64_t count = std::min(block, range.last - first);
    for (uint32_t i = 0; i < context.input_count; i += inputs_of_a_term) {
      const T* const x = static_cast<const T*>(context.inputs[i]->data) + first;
      const FloatSum<T> weight = to_arithmetic(*static_cast<const T*>(context.inputs[i + 1]->data));
      if (i == 0)
        for (int64_t k = 0; k < count; ++k) sums[k] = weight * to_arithmetic(x[k]);
      else
        for (int64_t k = 0; k < count; ++k) sums[k] += weight * to_arithmetic(x[k]);
    }
    for (int64_t k = 0; k < count; ++k) y[first + k] = from_arithmetic<T>(sums[k]);
  }
}

class WeightedSum {
 public:
  Status prepare(PrepareContext& context) {
    double bytes = static_cast<double>(context.output(0)->byte_size);
    for (uint32_t i = 0; i < context.input_count(); ++i) bytes += static_cast<double>(context.input(i)->byte_size);
    tiling_.plan(context, bytes, byte_width(context.output(0)->dtype) == 2 ? 4.0 : 1.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& y = *context.outputs[0];
    const Tiling::Range range = tiling_.range(y.element_count, begin, end);
    with_float(y.dtype, [&](auto tag) { add_terms<typename decltype(tag)::type>(context, range); });
    return {};
  }

 private:
  Tiling tiling_;
};

Status weighted_sum_gradient(GradientContext& g) {
  for (uint32_t i = 0; i < g.input_count(); i += inputs_of_a_term) {
    const GradientValue x = g.x(i), weight = g.x(i + 1);
    if (g.wants(i)) g.give(i, g.emit("WeightedSum", {g.dy(0), weight}, {}, "heddle"));
    if (!g.wants(i + 1)) continue;
    const GradientValue sum = g.emit("ReduceSum", {pointwise(g, "x0 * x1", {x, g.dy(0)})}, {{"keepdims", 0}});
    g.give(i + 1, reshape(g, sum, shape_of(g, weight)));  // a weight may be [1]
  }
  return {};
}

}  // namespace

void add_weighted_sum(Builder& plugin) {
  plugin.add(Op("WeightedSum", "heddle")
                 .doc("Adds tensors, each multiplied with its weight, in the order of the pairs of a tensor and a number.")
                 .formula("y = x0 w0 + x1 w1 + ...")
                 .shapes("y has the dims of x0, which all tensors have")
                 .variadic("x_and_weights", float_dtypes)
                 .out("y", {}, float_dtypes)
                 .in_place("y", "x_and_weights")  // only x0: an output may reuse only the memory of a port's first value
                 .infer(infer_weighted_sum)
                 .cost<weighted_sum_cost>()
                 .gradient<weighted_sum_gradient>()
                 .cpu<WeightedSum>()
                 .example("f32[2,2] = 1 2 3 4, f32[] = 2, f32[2,2] = 10 20 30 40, f32[] = 0.5 -> f32[2,2] = 7 14 21 28", "by hand")
                 .example("f64[3] = 1 -2 4, f64[1] = -0.5 -> f64[3] = -0.5 1 -2", "by hand")
                 .example("f16[2] = 1 2, f16[] = 3, f16[2] = 4 5, f16[] = 0, f16[2] = 6 7, f16[1] = -1 -> f16[2] = -3 -1", "by hand"));
}

}  // namespace heddle::cpu
