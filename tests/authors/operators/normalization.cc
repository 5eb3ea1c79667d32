// Operators of several outputs whose gradients are operators too: group normalisation with its statistics, rows of length one.
#include <algorithm>
#include <cmath>
#include <string>

#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

Status infer_groups(const InferContext& c, int64_t* groups) {
  *groups = c.attributes.i("groups");
  if (*groups < 1) return invalid("groups is " + std::to_string(*groups) + ", expected 1 or more");
  if (c.attributes.f("epsilon") < 0) return invalid("epsilon is negative");
  const Dims x = c.dims(0);
  if (x[1] % *groups != 0)
    return invalid("x has " + std::to_string(x[1]) + " channels, which are not cut into " + std::to_string(*groups) + " groups");
  return {};
}

Status infer_group_norm(InferContext& c) {
  int64_t groups = 0;
  HEDDLE_PLUGIN_CHECK(infer_groups(c, &groups));
  const int64_t statistics[] = {c.dims(0)[0], groups};
  c.set_dims(1, statistics, 2);
  c.set_dims(2, statistics, 2);
  return {};
}

Status infer_group_norm_grad(InferContext& c) {
  int64_t groups = 0;
  HEDDLE_PLUGIN_CHECK(infer_groups(c, &groups));
  if (c.dims(2)[1] == groups) return {};
  return invalid("mean is " + dims_text(c.dims(2)) + ", expected one number for each of " + std::to_string(groups) + " groups");
}

// The places of the groups of [N, C, ...].
struct Groups {
  Groups() = default;
  Groups(Dims x, int64_t count)
      : batch(x[0]), count(count), channels(x[1] / count), positions(x.count(2, x.rank)), elements(channels * positions) {}
  int64_t offset(int64_t n, int64_t group) const { return (n * count + group) * elements; }
  int64_t batch = 0, count = 1, channels = 0, positions = 0, elements = 0;
};

template <class T>
class GroupNorm {
 public:
  Status create(const CreateContext& c) {
    groups_.count = c.attributes.i("groups");
    epsilon_ = c.attributes.f("epsilon");
    return {};
  }
  Status prepare(PrepareContext& c) {
    groups_ = Groups({c.input(0)->dims, c.input(0)->rank}, groups_.count);
    c.set_tiles(groups_.batch * groups_.count);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0), scale = input<T>(c, 1), bias = input<T>(c, 2);
    const Out<T> y = output<T>(c, 0), mean = output<T>(c, 1), deviation = output<T>(c, 2);
    for (int64_t tile = begin; tile < end; ++tile) {
      if (is_cancelled(c)) return cancelled();
      const int64_t at = tile * groups_.elements, first = tile % groups_.count * groups_.channels;
      double m = 0, r = 0;
      statistics(x.data + at, &m, &r);
      mean[tile] = static_cast<T>(m);
      deviation[tile] = static_cast<T>(r);
      for (int64_t channel = 0; channel < groups_.channels; ++channel)
        for (int64_t i = at + channel * groups_.positions; i < at + (channel + 1) * groups_.positions; ++i)
          y[i] = static_cast<T>((x[i] - m) * r * scale[first + channel] + bias[first + channel]);
    }
    return {};
  }

 private:
  void statistics(const T* x, double* mean, double* deviation) const {
    const double n = static_cast<double>(std::max<int64_t>(groups_.elements, 1));
    double sum = 0, squares = 0;
    for (int64_t i = 0; i < groups_.elements; ++i) sum += x[i];
    *mean = sum / n;
    for (int64_t i = 0; i < groups_.elements; ++i) squares += (x[i] - *mean) * (x[i] - *mean);
    *deviation = 1 / std::sqrt(squares / n + epsilon_);
  }
  Groups groups_;
  double epsilon_ = 0;
};

// A tile is a group in all of the batch: no other tile has its channels.
template <class T>
class GroupNormGrad {
 public:
  Status create(const CreateContext& c) {
    groups_.count = c.attributes.i("groups");
    return {};
  }
  Status prepare(PrepareContext& c) {
    groups_ = Groups({c.input(0)->dims, c.input(0)->rank}, groups_.count);
    c.set_tiles(groups_.count);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const Out<T> d_scale = output<T>(c, 1), d_bias = output<T>(c, 2);
    for (int64_t group = begin; group < end; ++group) {
      for (int64_t channel = group * groups_.channels; channel < (group + 1) * groups_.channels; ++channel)
        d_scale[channel] = d_bias[channel] = 0;
      for (int64_t n = 0; n < groups_.batch; ++n) {
        if (is_cancelled(c)) return cancelled();
        one(c, n, group);
      }
    }
    return {};
  }

 private:
  void one(const RunContext& c, int64_t n, int64_t group) const {
    const In<T> x = input<T>(c, 0), scale = input<T>(c, 1), mean = input<T>(c, 2), deviation = input<T>(c, 3);
    const In<T> dy = input<T>(c, 4), d_mean = input<T>(c, 5), d_deviation = input<T>(c, 6);
    const Out<T> dx = output<T>(c, 0), d_scale = output<T>(c, 1), d_bias = output<T>(c, 2);
    const int64_t at = groups_.offset(n, group), which = n * groups_.count + group;
    const double m = mean[which], r = deviation[which], count = static_cast<double>(groups_.elements);
    const auto normal = [&](int64_t i) { return (x[i] - m) * r; };
    const auto of_y = [&](int64_t i) { return dy.tensor ? static_cast<double>(dy[i]) : 0.0; };
    double sum = 0, product = 0;
    for (int64_t k = 0; k < groups_.channels; ++k) {
      const int64_t channel = group * groups_.channels + k, begin = at + k * groups_.positions;
      double dy_sum = 0, dy_product = 0;
      for (int64_t i = begin; i < begin + groups_.positions; ++i) {
        dy_sum += of_y(i);
        dy_product += of_y(i) * normal(i);
      }
      d_bias[channel] += static_cast<T>(dy_sum);
      d_scale[channel] += static_cast<T>(dy_product);
      sum += dy_sum * scale[channel];
      product += dy_product * scale[channel];
    }
    const double of_mean = d_mean.tensor ? static_cast<double>(d_mean[which]) : 0;
    const double of_deviation = d_deviation.tensor ? static_cast<double>(d_deviation[which]) : 0;
    for (int64_t k = 0; k < groups_.channels; ++k) {
      const double factor = scale[group * groups_.channels + k];
      for (int64_t i = at + k * groups_.positions; i < at + (k + 1) * groups_.positions; ++i)
        dx[i] = static_cast<T>(r * (of_y(i) * factor - (sum + normal(i) * product) / count) +
                               (of_mean - r * r * normal(i) * of_deviation) / count);
    }
  }
  Groups groups_;
};

// The part that both kernels of rows share; 16-bit floats are computed as double, like all others.
class Rows {
 public:
  Status create(const CreateContext& c) {
    epsilon_ = c.attributes.f("epsilon");
    return {};
  }
  Status prepare(PrepareContext& c) {
    const Dims x = {c.input(0)->dims, c.input(0)->rank};
    columns_ = x[-1];
    rows_ = Tiles::of(x.count(0, x.rank - 1), 16384 / std::max<int64_t>(columns_, 1));
    c.set_tiles(rows_.count());
    return {};
  }

 protected:
  template <class T>
  double length(const T* x) const {
    double squares = 0;
    for (int64_t i = 0; i < columns_; ++i) squares += static_cast<double>(x[i]) * static_cast<double>(x[i]);
    return std::sqrt(squares + epsilon_);
  }
  int64_t columns_ = 0;
  Tiles rows_;

 private:
  double epsilon_ = 0;
};

template <class T>
class UnitRows : public Rows {
 public:
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0);
    const Out<T> y = output<T>(c, 0), lengths = output<T>(c, 1);
    for (const int64_t row : rows_.elements(begin, end)) {
      const double root = length(x.data + row * columns_);
      if (lengths) lengths[row] = static_cast<T>(root);
      for (int64_t i = row * columns_; i < (row + 1) * columns_; ++i) y[i] = static_cast<T>(static_cast<double>(x[i]) / root);
    }
    return {};
  }
};

template <class T>
class UnitRowsGrad : public Rows {
 public:
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0), dy = input<T>(c, 1), d_length = input<T>(c, 2);
    const Out<T> dx = output<T>(c, 0);
    for (const int64_t row : rows_.elements(begin, end)) {
      const int64_t at = row * columns_;
      const double root = length(x.data + at);
      const auto of_y = [&](int64_t i) { return dy.tensor ? static_cast<double>(dy[i]) : 0.0; };
      double along = 0;
      for (int64_t i = at; i < at + columns_; ++i) along += of_y(i) * (static_cast<double>(x[i]) / root);
      if (d_length.tensor) along -= static_cast<double>(d_length[row]) * root;
      for (int64_t i = at; i < at + columns_; ++i) dx[i] = static_cast<T>((of_y(i) - static_cast<double>(x[i]) / root * along) / root);
    }
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("authors_normalization", "1.0", plugin) {
  constexpr heddle_dtype_set real = dtypes<float, double>();
  plugin.add(Op("GroupNorm", "authors")
                 .doc("y = (x - mean) * rstd * scale + bias, with mean and rstd = 1 / sqrt(variance + epsilon) of each group of channels")
                 .in("x", real)
                 .dims("N C ...")
                 .in("scale", real)
                 .dims("C")
                 .in("bias", real)
                 .dims("C")
                 .out("y", same_as("x"))
                 .out("mean")
                 .out("rstd")
                 .attribute("groups", 1)
                 .attribute("epsilon", 1e-5)
                 .infer(infer_group_norm)
                 .gradient("GroupNormGrad", {"x", "scale", "mean", "rstd", "dy", "dmean", "drstd"}, {"dx", "dscale", "dbias"})
                 .example("f32[1,2,2] = 1 2 3 4, f32[2] = 1 10, f32[2] = 0 5; epsilon=0"
                          " -> f32[1,2,2] = -1.3416407865 -0.4472135955 9.472135955 18.416407865, f32[1,1] = 2.5, f32[1,1] = 0.894427191",
                          "by hand: variance 1.25")
                 .example("f32[1,2,2] = 1 3 10 14, f32[2] = 1, f32[2] = 0; groups=2, epsilon=0"
                          " -> f32[1,2,2] = -1 1 -1 1, f32[1,2] = 2 12, f32[1,2] = 1 0.5",
                          "by hand")
                 .example("f64[2,6,5], f64[6], f64[6]; groups=3")
                 .cpu<GroupNorm<float>>({dtypes<float>()})
                 .cpu<GroupNorm<double>>({dtypes<double>()}));
  plugin.add(Op("GroupNormGrad", "authors")
                 .doc("the gradients of GroupNorm's x, scale and bias from those of its outputs that there are")
                 .in("x", real)
                 .dims("N C ...")
                 .in("scale", real)
                 .dims("C")
                 .in("mean", real)
                 .dims("N G")
                 .in("rstd", real)
                 .dims("N G")
                 .optional("dy", real)
                 .dims("N C ...")
                 .optional("dmean", real)
                 .dims("N G")
                 .optional("drstd", real)
                 .dims("N G")
                 .out("dx", same_as("x"))
                 .out("dscale")
                 .dims("C")
                 .out("dbias")
                 .dims("C")
                 .attribute("groups", 1)
                 .attribute("epsilon", 1e-5)
                 .infer(infer_group_norm_grad)
                 .example("f32[1,1,2] = 1 3, f32[1] = 2, f32[1,1] = 2, f32[1,1] = 1, f32[1,1,2] = 1 0"
                          " -> f32[1,1,2] = 0 0, f32[1] = -1, f32[1] = 1",
                          "by hand: two values are always -1 and 1")
                 .example("f32[1,1,2] = 1 3, f32[1] = 2, f32[1,1] = 2, f32[1,1] = 1, -, f32[1,1] = 4, f32[1,1] = 6"
                          " -> f32[1,1,2] = 5 -1, f32[1] = 0, f32[1] = 0",
                          "by hand: 4 / 2 and -+6 / 2")
                 .example("f64[2,6,5], f64[6], f64[2,3], f64[2,3], f64[2,6,5], f64[2,3], f64[2,3]; groups=3")
                 .cpu<GroupNormGrad<float>>({dtypes<float>()})
                 .cpu<GroupNormGrad<double>>({dtypes<double>()}));
  plugin.add(Op("UnitRows", "authors")
                 .doc("rows of length one: y = x / length, length = sqrt(sum of x * x + epsilon)")
                 .in("x", float_dtypes)
                 .dims("... D")
                 .out("y", same_as("x"))
                 .optional_out("length", {}, float_dtypes)
                 .dims("... 1")
                 .attribute("epsilon", 1e-12)
                 .gradient("UnitRowsGrad", {"x", "dy", "dlength"}, {"dx"})
                 .example("f32[2,2] = 3 4 0 -2 -> f32[2,2] = 0.6 0.8 0 -1, f32[2,1] = 5 2", "by hand")
                 .example("f32[3] = 2 3 6; epsilon=0 -> f32[3] = 0.285714286 0.428571429 0.857142857", "by hand: 2 / 7, 3 / 7, 6 / 7")
                 .cpu<UnitRows<float>>({dtypes<float>()})
                 .cpu<UnitRows<double>>({dtypes<double>()})
                 .cpu<UnitRows<f16>>({dtypes<f16>()})
                 .cpu<UnitRows<bf16>>({dtypes<bf16>()}));
  plugin.add(Op("UnitRowsGrad", "authors")
                 .doc("dx = (dy - y * (sum of dy * y - dlength * length)) / length, of UnitRows")
                 .in("x", float_dtypes)
                 .dims("... D")
                 .optional("dy", float_dtypes)
                 .dims("... D")
                 .optional("dlength", float_dtypes)
                 .dims("... 1")
                 .out("dx", same_as("x"))
                 .attribute("epsilon", 1e-12)
                 .example("f32[2] = 3 4, f32[2] = 1 0 -> f32[2] = 0.128 -0.096", "by hand: (1 - 0.36) / 5, -0.48 / 5")
                 .example("f32[1,2] = 3 4, -, f32[1,1] = 10; epsilon=0 -> f32[1,2] = 6 8", "by hand")
                 .example("f32[5,7], f32[5,7], f32[5,1]")
                 .cpu<UnitRowsGrad<float>>({dtypes<float>()})
                 .cpu<UnitRowsGrad<double>>({dtypes<double>()})
                 .cpu<UnitRowsGrad<f16>>({dtypes<f16>()})
                 .cpu<UnitRowsGrad<bf16>>({dtypes<bf16>()}));
}
