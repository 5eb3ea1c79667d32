// RandomNormal, RandomUniform, their -Like forms, Bernoulli, Multinomial: numbers from Philox(seed, stream, step, trip, element).
//
// Elements of up to 32 bits take one word each, four to a block; f64 takes two, two elements to a block. Tiles are ranges of blocks.
// docs/operators.md describes how words become numbers.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "families.h"
#include "shared/axes.h"
#include "shared/dtype_dispatch.h"
#include "shared/onnx_dtype.h"
#include "shared/random_numbers.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

// ---------------------------------------------------------------- RandomNormal, RandomUniform

enum class ShapeOf { attribute, input };

template <ShapeOf shape_of>
Status infer_random(InferContext& context) {
  constexpr bool like = shape_of == ShapeOf::input;
  heddle_dtype dtype = like ? context.input(0).dtype : HEDDLE_F32;
  HEDDLE_PLUGIN_CHECK(dtype_attribute(context.attributes, "dtype", &dtype));
  if (!(HEDDLE_DTYPE_BIT(dtype) & float_dtypes)) return invalid("the output is not of a floating-point type; give dtype");
  context.set_dtype(0, dtype);
  if constexpr (like) {
    context.set_dims(0, context.dims(0));
  } else {
    const std::vector<int64_t> dims = context.attributes.ints("shape");
    HEDDLE_PLUGIN_CHECK(check_rank(dims.size()));
    for (int64_t dim : dims)
      if (dim < 0) return invalid("shape has the extent " + std::to_string(dim) + ", expected 0 or more");
    context.set_dims(0, dims);
  }
  return {};
}

// The next smaller number of T; `value` must not be the smallest.
template <class T>
T before(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return std::nextafter(value, -std::numeric_limits<T>::infinity());
  else if constexpr (std::is_integral_v<T>)
    return static_cast<T>(value - 1);
  else
    return T::from_bits(static_cast<uint16_t>((value.bits & 0x8000) ? value.bits + 1 : value.bits == 0 ? 0x8001 : value.bits - 1));
}

enum class Distribution { normal, uniform };

template <Distribution distribution>
class Random {
  static constexpr bool normal = distribution == Distribution::normal;

 public:
  Status create(const CreateContext& context) {
    seed_ = Seed::from_float(context.attributes);
    numbers_ = random_numbers(context.attributes, normal);
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size), normal ? 20.0 : 4.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor& y = *context.outputs[0];
    const Philox philox = seed_.generator(context);
    with_dtype(y.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      constexpr size_t per_block = sizeof(T) == 8 ? 2 : 4;
      constexpr auto in_block = static_cast<int64_t>(per_block);
      const Tiling::Range range = tiling_.range((y.element_count + in_block - 1) / in_block, begin, end);
      const int64_t last = std::min(range.last * in_block, y.element_count);
      for (int64_t i = range.first * in_block; i < last;) {
        const uint64_t number = context.random_first + static_cast<uint64_t>(i);
        double values[4];
        fill<per_block>(philox.block(number / per_block), values);
        for (size_t own = number % per_block; own < per_block && i < last; ++own, ++i) {
          const T value = from_arithmetic<T>(numbers_.offset + numbers_.factor * values[own]);
          // Uniform numbers are below their bound; those next to it may have been rounded up to it.
          static_cast<T*>(y.data)[i] = static_cast<double>(to_arithmetic(value)) >= numbers_.bound ? before(value) : value;
        }
      }
    });
    return {};
  }

 private:
  template <size_t per_block>
  static void fill(const Philox::Block& words, double* values) {
    double u[4];
    if constexpr (per_block == 2) {
      u[0] = unit_double(words[0], words[1]);
      u[1] = unit_double(words[2], words[3]);
    } else {
      for (size_t i = 0; i < 4; ++i) u[i] = static_cast<double>(unit_float(words[i]));
    }
    for (size_t i = 0; i < per_block; i += 2) {
      const std::array<double, 2> z = normal ? normal_pair(u[i], u[i + 1]) : std::array<double, 2>{u[i], u[i + 1]};
      values[i] = z[0];
      values[i + 1] = z[1];
    }
  }
  Seed seed_;
  RandomNumbers numbers_;
  Tiling tiling_;
};

// ---------------------------------------------------------------- Bernoulli

Status infer_bernoulli(InferContext& context) {
  heddle_dtype dtype = context.input(0).dtype;
  HEDDLE_PLUGIN_CHECK(dtype_attribute(context.attributes, "dtype", &dtype));
  context.set_dtype(0, dtype);
  context.set_dims(0, context.dims(0));
  return {};
}

class Bernoulli {
 public:
  Status create(const CreateContext& context) {
    seed_ = Seed::from_float(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, static_cast<int64_t>(context.output(0)->byte_size), 8.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &p = *context.inputs[0], &y = *context.outputs[0];
    const Philox philox = seed_.generator(context);
    const Tiling::Range range = tiling_.range((y.element_count + 3) / 4, begin, end);
    with_dtype(y.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const int64_t last = std::min(range.last * 4, y.element_count);
      for (int64_t i = range.first * 4; i < last;) {
        const uint64_t number = context.random_first + static_cast<uint64_t>(i);
        const Philox::Block words = philox.block(number / 4);
        for (size_t word = number % 4; word < 4 && i < last; ++word, ++i) {
          const double u = static_cast<double>(words[word]) * 0x1p-32;
          static_cast<T*>(y.data)[i] = from_arithmetic<T>(u < number_at(p, i) ? 1 : 0);
        }
      }
    });
    return {};
  }

 private:
  Seed seed_;
  Tiling tiling_;
};

// ---------------------------------------------------------------- Multinomial

Status infer_multinomial(InferContext& context) {
  const Dims x = context.dims(0);
  heddle_dtype dtype = HEDDLE_I32;
  HEDDLE_PLUGIN_CHECK(dtype_attribute(context.attributes, "dtype", &dtype));
  if (dtype != HEDDLE_I32 && dtype != HEDDLE_I64) return invalid("dtype must be int32 or int64");
  const int64_t samples = context.attributes.i("sample_size");
  if (x.rank != 2 || x[1] < 1) return invalid("input has shape " + dims_text(x) + ", expected [batch, classes]");
  if (samples < 0) return invalid("sample_size is " + std::to_string(samples) + ", expected 0 or more");
  context.set_dtype(0, dtype);
  context.set_dims(0, std::vector<int64_t>{x[0], samples});
  return {};
}

// Input: unnormalised logarithms of probabilities. A tile is a range of batch entries.
class Multinomial {
 public:
  Status create(const CreateContext& context) {
    seed_ = Seed::from_float(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& x = *context.input(0);
    tiling_.plan(context, static_cast<int64_t>(x.byte_size + context.output(0)->byte_size), 40.0);
    context.set_scratch(0, static_cast<uint64_t>(x.dims[1]) * sizeof(double));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    const int64_t classes = x.dims[1], samples = y.dims[1];
    auto* cumulative = thread_scratch<double>(context);
    const Philox philox = seed_.generator(context);
    const Tiling::Range range = tiling_.range(x.dims[0], begin, end);
    CancellationPoll poll(context);
    for (int64_t row = range.first; row < range.last && !poll.stopped(); ++row) {
      double largest = number_at(x, row * classes);
      for (int64_t c = 1; c < classes && !poll.stops(4); ++c) largest = std::max(largest, number_at(x, row * classes + c));
      double sum = 0;
      for (int64_t c = 0; c < classes && !poll.stops(10); ++c) cumulative[c] = sum += std::exp(number_at(x, row * classes + c) - largest);
      for (int64_t s = 0; s < samples && !poll.stops(40); ++s) {
        const int64_t element = row * samples + s;
        const uint64_t number = context.random_first + static_cast<uint64_t>(element);
        const Philox::Block words = philox.block(number / 2);
        const size_t word = number % 2 * 2;
        const double u = unit_double(words[word], words[word + 1]) * sum;
        const int64_t found = std::min(std::upper_bound(cumulative, cumulative + classes, u) - cumulative, classes - 1);
        if (y.dtype == HEDDLE_I32)
          static_cast<int32_t*>(y.data)[element] = static_cast<int32_t>(found);
        else
          static_cast<int64_t*>(y.data)[element] = found;
      }
    }
    return poll.status();
  }

 private:
  Seed seed_;
  Tiling tiling_;
};

using Defaults = std::array<std::pair<const char*, double>, 2>;

Op random_operator(const char* name, const Defaults& attributes) {
  Op op(name, "", 1);
  op.traits(HEDDLE_TRAIT_RANDOM).maybe("seed", HEDDLE_ATTRIBUTE_FLOAT).maybe("dtype", HEDDLE_ATTRIBUTE_INT);
  for (const auto& [attribute, value] : attributes) op.attribute(attribute, value);
  return op;
}

// An operator whose shape is an attribute, or that of its input.
template <Distribution distribution, ShapeOf shape_of>
Op numbers_operator(const char* name, const Defaults& attributes, const char* example) {
  Op op = random_operator(name, attributes);
  if (shape_of == ShapeOf::attribute)
    op.required("shape", HEDDLE_ATTRIBUTE_INTS);
  else
    op.in("input", any_dtype, nullptr).not_differentiable();
  op.out("output", {}, float_dtypes, nullptr);
  op.infer(infer_random<shape_of>);
  op.cpu<Random<distribution>>();
  if (shape_of == ShapeOf::attribute)
    op.example("; shape=[2,3] -> f32[2,3]", "by hand");
  else
    op.example_of_each(any_dtype, "$[2,3] = 1; dtype=1 -> f32[2,3]", "by hand");
  op.example(example, "by hand");
  return op;
}

}  // namespace

void add_random(Builder& plugin) {
  const Defaults normal = {{{"mean", 0.0}, {"scale", 1.0}}}, uniform = {{{"low", 0.0}, {"high", 1.0}}};
  plugin.add(numbers_operator<Distribution::normal, ShapeOf::attribute>("RandomNormal", normal,
                                                                        "; shape=[4], dtype=11, seed=3.0, mean=1.0, scale=2.0 -> f64[4]")
                 .doc("Draws normally distributed numbers.")
                 .formula("output = mean + scale z")
                 .shapes("output has the dims of the attribute shape"));
  plugin.add(numbers_operator<Distribution::normal, ShapeOf::input>("RandomNormalLike", normal,
                                                                    "f64[3] = 0; seed=2.0, mean=1.0, scale=2.0 -> f64[3]")
                 .doc("Draws normally distributed numbers in the dims of the input.")
                 .formula("output = mean + scale z")
                 .shapes("output has the dims of input"));
  plugin.add(numbers_operator<Distribution::uniform, ShapeOf::attribute>("RandomUniform", uniform,
                                                                         "; shape=[4], dtype=11, seed=3.0, low=1.0, high=2.0 -> f64[4]")
                 .doc("Draws uniformly distributed numbers from low up to but without high.")
                 .formula("output = low + (high - low) u")
                 .shapes("output has the dims of the attribute shape"));
  plugin.add(numbers_operator<Distribution::uniform, ShapeOf::input>("RandomUniformLike", uniform,
                                                                     "f64[3] = 0; seed=2.0, low=1.0, high=2.0 -> f64[3]")
                 .doc("Draws uniformly distributed numbers from low up to but without high, in the dims of the input.")
                 .formula("output = low + (high - low) u")
                 .shapes("output has the dims of input"));
  plugin.add(Op("Bernoulli", "", 15)
                 .doc("Draws 1 with the probability that the input gives, and 0 otherwise.")
                 .shapes("output has the dims of input")
                 .traits(HEDDLE_TRAIT_RANDOM)
                 .in("input", float_dtypes, nullptr)
                 .not_differentiable()
                 .out("output", {}, any_dtype, nullptr)
                 .maybe("seed", HEDDLE_ATTRIBUTE_FLOAT)
                 .maybe("dtype", HEDDLE_ATTRIBUTE_INT)
                 .infer(infer_bernoulli)
                 .cpu<Bernoulli>()
                 .example("f32[4] = 0 1 1 0; seed=1.0 -> f32[4] = 0 1 1 0", "by hand")
                 .example("f32[3] = 1 0 1; dtype=7 -> i64[3] = 1 0 1", "by hand"));
  plugin.add(Op("Multinomial", "", 7)
                 .doc("Draws classes with probabilities that are proportional to exp(input).")
                 .shapes("input is [batches, classes]; output is [batches, sample_size]")
                 .traits(HEDDLE_TRAIT_RANDOM)
                 .in("input", float_dtypes, nullptr)
                 .out("output", {}, index_dtypes, nullptr)
                 .maybe("seed", HEDDLE_ATTRIBUTE_FLOAT)
                 .maybe("dtype", HEDDLE_ATTRIBUTE_INT)
                 .attribute("sample_size", 1)
                 .infer(infer_multinomial)
                 .cpu<Multinomial>()
                 .example("f32[2,1] = 0.5 2; sample_size=3, seed=2.0, dtype=7 -> i64[2,3] = 0", "by hand")
                 .example("f32[1,3] = -10000 0 -10000; sample_size=2 -> i32[1,2] = 1", "by hand"));
}

}  // namespace heddle::cpu
