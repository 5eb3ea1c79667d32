// Random operators: each element has its own numbers, whichever thread computes it.
#include <algorithm>
#include <cmath>
#include <string>

#include "heddle/op.h"
#include "heddle/op/philox.h"

using namespace heddle::plugin;

namespace {

Status infer_sample(InferContext& c) {
  const int64_t samples = c.attributes.i("samples");
  if (samples < 0) return invalid("samples is " + std::to_string(samples));
  if (!(c.attributes.f("temperature") > 0)) return invalid("temperature is not positive");
  if (c.dims(0)[1] == 0) return invalid("there is no class to sample");
  const int64_t dims[] = {c.dims(0)[0], samples};
  c.set_dims(0, dims, 2);
  return {};
}

// A tile is a row.
template <class T>
class SampleLogits {
 public:
  Status create(const CreateContext& c) {
    temperature_ = c.attributes.f("temperature");
    return {};
  }
  Status prepare(PrepareContext& c) {
    rows_ = c.input(0)->dims[0];
    classes_ = c.input(0)->dims[1];
    samples_ = c.output(0)->dims[1];
    c.set_tiles(rows_);
    c.set_scratch(0, static_cast<uint64_t>(classes_) * sizeof(double));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const Philox philox(*c.run_state, c.random_stream);
    const Out<int64_t> y = output<int64_t>(c, 0);
    double* const sums = thread_scratch<double>(c);
    for (int64_t row = begin; row < end; ++row) {
      HEDDLE_PLUGIN_CHECK(sum_up(input<T>(c, 0).data + row * classes_, row, sums));
      for (int64_t i = row * samples_; i < (row + 1) * samples_; ++i) {
        const Philox::Block words = philox.block(static_cast<uint64_t>(i));
        const double wanted = unit_double(words[0], words[1]) * sums[classes_ - 1];
        y[i] = std::upper_bound(sums, sums + classes_ - 1, wanted) - sums;
      }
    }
    return {};
  }

 private:
  Status sum_up(const T* logits, int64_t row, double* sums) const {
    double largest = -HUGE_VAL;
    for (int64_t k = 0; k < classes_; ++k) {
      const double logit = static_cast<double>(logits[k]);
      if (logit != logit) return invalid("logit " + std::to_string(k) + " of row " + std::to_string(row) + " is not a number");
      largest = std::max(largest, logit);
    }
    if (std::isinf(largest)) return invalid("the largest logit of row " + std::to_string(row) + " is infinite");
    double sum = 0;
    for (int64_t k = 0; k < classes_; ++k) sums[k] = sum += std::exp((static_cast<double>(logits[k]) - largest) / temperature_);
    return {};
  }
  double temperature_ = 1;
  int64_t rows_ = 0, classes_ = 0, samples_ = 0;
};

template <class T>
class GaussianNoise {
 public:
  Status create(const CreateContext& c) {
    deviation_ = c.attributes.f("deviation");
    return {};
  }
  Status prepare(PrepareContext& c) {
    elements_ = Tiles::of(c.output(0)->element_count, 4096);
    c.set_tiles(elements_.count());
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0);
    const Out<T> y = output<T>(c, 0);
    const Philox philox(*c.run_state, c.random_stream);
    for (const int64_t i : elements_.elements(begin, end)) {
      const Philox::Block words = philox.block(static_cast<uint64_t>(i / 2));
      const auto pair = normal_pair(unit_double(words[0], words[1]), unit_double(words[2], words[3]));
      y[i] = static_cast<T>(x[i] + deviation_ * pair[static_cast<size_t>(i % 2)]);
    }
    return {};
  }

 private:
  double deviation_ = 1;
  Tiles elements_;
};

}  // namespace

HEDDLE_PLUGIN("authors_sampling", "1.0", plugin) {
  plugin.add(
      Op("SampleLogits", "authors")
          .doc("samples of each row's classes, of probabilities softmax(logits / temperature)")
          .in("logits", float_dtypes)
          .dims("N C")
          .out_as("classes", HEDDLE_I64)
          .attribute("samples", 1)
          .attribute("temperature", 1.0)
          .traits(HEDDLE_TRAIT_RANDOM)
          .infer(infer_sample)
          .example("f32[2,3] = -inf 0 -inf 1 2 900; samples=4 -> i64[2,4] = 1 1 1 1 2 2 2 2", "by hand: all others have probability 0")
          .example("f64[1,2] = 1 2; temperature=1e-4, samples=3 -> i64[1,3] = 1 1 1", "by hand: exp(-10000) is 0")
          .example("f32[5,40]; samples=100, temperature=2 -> i64[5,100]")
          .cpu<SampleLogits<float>>({dtypes<float>()})
          .cpu<SampleLogits<double>>({dtypes<double>()})
          .cpu<SampleLogits<f16>>({dtypes<f16>()})
          .cpu<SampleLogits<bf16>>({dtypes<bf16>()}));
  plugin.add(Op("GaussianNoise", "authors")
                 .doc("y = x + deviation * a standard normal of each element")
                 .in("x", dtypes<float, double>())
                 .out("y", same_as("x"))
                 .in_place("y", "x")
                 .attribute("deviation", 1.0)
                 .traits(HEDDLE_TRAIT_RANDOM)
                 .gradient("Identity", {"dy"}, {"dx"}, "")
                 .example("f32[2,2] = 1 2 3 4; deviation=0 -> f32[2,2] = 1 2 3 4", "by hand")
                 .example("f64[3,2000]; deviation=0.5")
                 .cpu<GaussianNoise<float>>({dtypes<float>()})
                 .cpu<GaussianNoise<double>>({dtypes<double>()}));
}
