// Dropout: the input as it is, or in training mode each element 0 with probability `ratio` and otherwise divided by 1 - ratio.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "shared/dtype_dispatch.h"
#include "shared/random_numbers.h"
#include "shared/scalar.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t ratio_port = 1, training_port = 2;

Status infer_dropout(InferContext& context) {
  for (uint32_t i = ratio_port; i <= training_port; ++i)
    if (context.has_input(i) && context.input(i).element_count != 1)
      return invalid(std::string(i == ratio_port ? "ratio" : "training_mode") + " has shape " + dims_text(context.dims(i)) +
                     ", expected a scalar");
  context.set_dims(0, context.dims(0));
  context.set_dims(1, context.dims(0));
  return {};
}

class Dropout {
 public:
  Status create(const CreateContext& context) {
    seed_ = Seed::from_integer(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    tiling_.plan(context, 2 * static_cast<int64_t>(x.byte_size), context.input(training_port) ? 3.0 : 1.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    const auto operand = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    auto* mask = context.output_count > 1 && context.outputs[1] ? static_cast<uint8_t*>(context.outputs[1]->data) : nullptr;
    const double ratio = operand(ratio_port) ? number_at(*operand(ratio_port), 0) : 0.5;
    const bool training = operand(training_port) && *static_cast<const uint8_t*>(operand(training_port)->data) != 0;
    HEDDLE_PLUGIN_CHECK(check_dropout_ratio(ratio));
    const Tiling::Range blocks = tiling_.range((x.element_count + 3) / 4, begin, end);
    const int64_t first = blocks.first * 4, last = std::min(blocks.last * 4, x.element_count);
    if (first >= last) return {};
    if (training && ratio > 0) {
      const Philox philox = seed_.generator(context);
      with_dtype(x.dtype, [&](auto tag) {
        using T = typename decltype(tag)::type;
        drop(philox, context.random_first, ratio, static_cast<const T*>(x.data), static_cast<T*>(y.data), mask, first, last);
      });
      return {};
    }
    const auto width = static_cast<int64_t>(byte_width(x.dtype));
    if (x.data != y.data)
      std::memcpy(static_cast<char*>(y.data) + first * width, static_cast<const char*>(x.data) + first * width,
                  static_cast<size_t>((last - first) * width));
    if (mask) std::memset(mask + first, 1, static_cast<size_t>(last - first));
    return {};
  }

 private:
  // Elements [first, last), of which element 0 has the number `zero`; y may be x.
  template <class T>
  static void drop(const Philox& philox, uint64_t zero, double ratio, const T* x, T* y, uint8_t* mask, int64_t first, int64_t last) {
    const auto threshold = static_cast<uint64_t>(ratio * 0x1p32);
    const auto factor = static_cast<Arithmetic<T>>(1.0 / (1.0 - ratio));
    for (int64_t i = first; i < last;) {
      const uint64_t number = zero + static_cast<uint64_t>(i);
      const Philox::Block words = philox.block(number / 4);
      for (size_t word = number % 4; word < 4 && i < last; ++word, ++i) {
        const bool kept = words[word] >= threshold;
        y[i] = from_arithmetic<T>(kept ? to_arithmetic(x[i]) * factor : Arithmetic<T>(0));
        if (mask) mask[i] = kept;
      }
    }
  }
  Seed seed_;
  Tiling tiling_;
};

// The gradients of kept elements, times the factor that scaled them.
Status dropout_gradient(GradientContext& g) {
  if (!g.x(training_port)) {
    g.give(0, g.dy(0));
    return {};
  }
  constexpr double half = 0.5, one = 1;
  const GradientValue scalar = g.ints({});
  const GradientValue ratio =
      g.x(ratio_port) ? reshape(g, cast(g, g.x(ratio_port), HEDDLE_F64), scalar) : g.constant(HEDDLE_F64, {}, &half);
  const GradientValue factor =
      g.emit("Where", {reshape(g, g.x(training_port), scalar), pointwise(g, "1 / (1 - x0)", {ratio}), g.constant(HEDDLE_F64, {}, &one)});
  const GradientValue kept = g.emit("CastLike", {g.needed_y(1), g.dy(0)});
  g.give(0, pointwise(g, "select(eq(x0, 0), 0, x1 * x2)", {kept, g.dy(0), g.emit("CastLike", {factor, g.dy(0)})}));
  return {};
}

}  // namespace

void add_dropout(Builder& plugin) {
  plugin.add(Op("Dropout", "", 13)
                 .doc("Gives the input or, in training mode, a random part of it: each element is dropped with the probability `ratio`, "
                      "and the others are scaled so that the mean stays.")
                 .formula("output = data mask / (1 - ratio)")
                 .shapes("output and mask have the dims of data")
                 .in("data", float_dtypes)
                 .optional("ratio", float_dtypes, nullptr)
                 .not_differentiable()
                 .optional("training_mode", dtypes<bool>(), nullptr)
                 .out("output", {}, float_dtypes)
                 .out_as("mask", HEDDLE_BOOL)
                 .in_place("output", "data")
                 .maybe("seed", HEDDLE_ATTRIBUTE_INT)
                 .traits(HEDDLE_TRAIT_RANDOM)
                 .infer(infer_dropout)
                 .gradient<dropout_gradient>()
                 .cpu<Dropout>()
                 .example("f32[3] = -4 -3 3, f32[] = 0.5 -> f32[3] = -4 -3 3, bool[3] = 1", "ONNX Runtime")
                 .example("f32[3] = -4 -3 3, f32[] = 0, bool[] = 1; seed=3 -> f32[3] = -4 -3 3, bool[3] = 1", "ONNX Runtime")
                 .example("f32[2] = 1 2, f16[] = 0.5 -> f32[2] = 1 2, bool[2] = 1", "by hand")
                 .example("f32[2] = 1 2, bf16[] = 0.5 -> f32[2] = 1 2, bool[2] = 1", "by hand")
                 .example("f32[2] = 1 2, f64[] = 0.5 -> f32[2] = 1 2, bool[2] = 1", "by hand"));
}

}  // namespace heddle::cpu
