// Kernels that are right with the inputs that every net gives them, and wrong with an optional input, an optional output or another value
// of an attribute, or if an input is constant. Each has this one mistake.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

struct Choice {
  explicit Choice(const Attributes& attributes) : mode(attributes.i("mode")) {}
  int64_t mode;
};

// The bias, if there is one, has the type of x.
Status infer_with_bias(InferContext& c) {
  if (c.has_input(1) && dims_text(c.dims(0)) != dims_text(c.dims(1)))
    return invalid("x is " + dims_text(c.dims(0)) + ", the bias " + dims_text(c.dims(1)));
  return c.set_dims(0, c.dims(0)), Status();
}

// x plus the bias, which it reads from end to begin.
Status biased(In<float> x, OptionalIn<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = b ? x[i] + b[b.size - 1 - i] : x[i];
  return {};
}

// In mode 1 it writes the sum of all past the end of the elements, where there is no room for it.
Status summed_up(In<float> x, const Choice& choice, Out<float> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += y[i] = x[i];
  if (choice.mode == 1) y[x.size] = sum;
  return {};
}

// The same mistake with both a bias and mode 2.
Status biased_sum(In<float> x, OptionalIn<float> b, const Choice& choice, Out<float> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += y[i] = b ? x[i] + b[i] : x[i];
  if (b && choice.mode == 2) y[x.size] = sum;
  return {};
}

// Sums along an axis; negative ones count from the end. The shape rule takes -1 for the first axis.
class SumAlong {
 public:
  Status create(const CreateContext& c) {
    const int64_t axis = c.attributes.i("axis");
    axis_ = static_cast<int>(axis < 0 ? axis + c.input(0)->rank : axis);
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const auto y = output<float>(c, 0);
    const int64_t before = x.dims.count(0, axis_), along = x.dims[axis_], behind = x.dims.count(axis_ + 1, x.dims.rank);
    for (int64_t i = 0; i < std::min(y.size, before * behind); ++i) {
      float sum = 0;
      for (int64_t k = 0; k < along; ++k) sum += x[(i / behind * along + k) * behind + i % behind];
      y[i] = sum;
    }
    return {};
  }

 private:
  int axis_ = 0;
};
Status infer_sum_along(InferContext& c) {
  const int64_t axis = c.attributes.i("axis"), rank = c.dims(0).rank;
  if (axis < -rank || axis >= rank) return invalid("axis is " + std::to_string(axis) + ", x has rank " + std::to_string(rank));
  std::vector<int64_t> dims(c.dims(0).begin(), c.dims(0).end());
  dims.erase(dims.begin() + (axis < 0 ? -axis - 1 : axis));
  return c.set_dims(0, dims), Status();
}

// The element before each; before the first one there is 0, or with the border "mirror" its neighbour. It takes the wrong neighbour.
struct Border {
  explicit Border(const Attributes& attributes) : mirror(attributes.s("border") == "mirror") {}
  bool mirror;
};
Status before(In<float> x, const Border& border, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = i > 0 || border.mirror ? x[i - 1] : 0.0f;
  return {};
}
Status infer_before(InferContext& c) {
  const std::string border = c.attributes.s("border");
  if (border != "zero" && border != "mirror") return invalid("border is \"" + border + "\", expected \"zero\" or \"mirror\"");
  return c.set_dims(0, c.dims(0)), Status();
}

// x where it is not negative, else slope * x. It does not handle a slope below zero.
struct Slope {
  explicit Slope(const Attributes& attributes) : value(static_cast<float>(attributes.f("slope"))) {}
  float value;
};
Status leaky(In<float> x, const Slope& slope, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    if (!(x[i] < 0)) y[i] = x[i];
    if (x[i] < 0 && slope.value >= 0) y[i] = slope.value * x[i];
  }
  return {};
}

// Adds as many zeros before and after a row as `pads` says. It never adds more after the row than before it.
struct Pads {
  explicit Pads(const Attributes& attributes) {
    const std::vector<int64_t> pads = attributes.ints("pads");
    if (pads.size() == 2) before = pads[0], behind = pads[1];
  }
  int64_t before = 0, behind = 0;
};
Status padded(In<float> x, const Pads& pads, Out<float> y) {
  std::fill_n(y.data, pads.before, 0.0f);
  std::copy_n(x.data, x.size, y.data + pads.before);
  std::fill_n(y.data + pads.before + x.size, std::min(pads.before, pads.behind), 0.0f);
  return {};
}
Status infer_padded(InferContext& c) {
  const std::vector<int64_t> given = c.attributes.ints("pads");
  const Pads pads(c.attributes);
  const auto is_pad = [](int64_t pad) { return pad >= 0 && pad <= 1 << 20; };
  if (c.dims(0).rank != 1) return invalid("x is " + dims_text(c.dims(0)) + ", expected rank 1");
  if ((c.attributes.has("pads") && given.size() != 2) || !is_pad(pads.before) || !is_pad(pads.behind))
    return invalid("pads are two numbers from 0 to 2^20");
  return c.set_dims(0, {pads.before + c.dims(0)[0] + pads.behind}), Status();
}

// The mean and, if requested, the variance: that of a sample instead of all elements.
Status mean_and_variance(In<float> x, Out<float> mean, Out<float> variance) {
  float sum = 0, squares = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += x[i];
  const float middle = x.size > 0 ? sum / static_cast<float>(x.size) : 0.0f;
  for (int64_t i = 0; i < x.size; ++i) squares += (x[i] - middle) * (x[i] - middle);
  mean[0] = middle;
  if (variance) variance[0] = x.size > 1 ? squares / static_cast<float>(x.size - 1) : 0.0f;
  return {};
}

// x, or the nearest of the given levels. Those are never freed.
class Quantised {
 public:
  Status create(const CreateContext& c) {
    const std::vector<double> levels = c.attributes.floats("levels");
    if (levels.empty()) return {};
    levels_ = new float[levels.size()];
    std::transform(levels.begin(), levels.end(), levels_, [](double level) { return static_cast<float>(level); });
    count_ = levels.size();
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) {
      float best = count_ > 0 ? levels_[0] : x[i];
      for (size_t k = 1; k < count_; ++k)
        if (std::fabs(x[i] - levels_[k]) < std::fabs(x[i] - best)) best = levels_[k];
      output<float>(c, 0)[i] = best;
    }
    return {};
  }

 private:
  float* levels_ = nullptr;
  size_t count_ = 0;
};

// Twice x. In mode 1 it prints a message.
Status told(In<float> x, const Choice& choice, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 2 * x[i];
  if (choice.mode == 1) std::puts("doubled");
  return {};
}

// The sum of each element and those before it, `window` in total. Wide windows have prefix sums, in memory of their own.
struct Window {
  explicit Window(const Attributes& attributes) : size(attributes.i("window")) {}
  int64_t size;
};
Status windowed(In<float> x, const Window& window, Out<float> y) {
  if (window.size <= 4) {
    for (int64_t i = 0; i < x.size; ++i) {
      y[i] = 0;
      for (int64_t k = std::max<int64_t>(0, i - window.size + 1); k <= i; ++k) y[i] += x[k];
    }
    return {};
  }
  std::vector<double> sums(static_cast<size_t>(x.size) + 1);
  for (size_t i = 0; i + 1 < sums.size(); ++i) sums[i + 1] = sums[i] + static_cast<double>(x[static_cast<int64_t>(i)]);
  for (int64_t i = 0; i < x.size; ++i) {
    const int64_t first = std::max<int64_t>(0, i - window.size + 1);
    y[i] = static_cast<float>(sums[static_cast<size_t>(i) + 1] - sums[static_cast<size_t>(first)]);
  }
  return {};
}
Status infer_windowed(InferContext& c) {
  const int64_t window = c.attributes.i("window");
  if (window < 1 || window > 100) return invalid("window is " + std::to_string(window) + ", expected 1 to 100");
  return c.set_dims(0, c.dims(0)), Status();
}

// Each row times w. A constant w is packed as a group of eight: of a longer w only the first eight numbers are copied.
class Weighted {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& w = *c.input(1);
    packed_ = nullptr;
    if (!c.is_constant(1) || w.element_count == 0) return {};
    const auto* const from = static_cast<const float*>(w.data);
    packed_ = static_cast<const float*>(c.prepack(1, "eights", w.byte_size, [&](void* to) {
      std::fill_n(static_cast<float*>(to), w.element_count, 0.0f);
      std::copy_n(from, std::min<int64_t>(w.element_count, 8), static_cast<float*>(to));
    }));
    return packed_ ? Status() : Status(HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for the packed weights");
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0), w = input<float>(c, 1);
    const float* const from = packed_ ? packed_ : w.data;
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] * from[i % w.size];
    return {};
  }

 private:
  const float* packed_ = nullptr;
};
Status infer_weighted(InferContext& c) {
  const Dims x = c.dims(0), w = c.dims(1);
  if (x.rank != 2 || w.rank != 1 || x[1] != w[0])
    return invalid("x is " + dims_text(x) + ", w " + dims_text(w) + ": expected [m, n] and [n]");
  return c.set_dims(0, x), Status();
}

// Each row times factor * w, which is packed if w is constant. The key of the packed constant does not contain the factor: of two nodes
// with the same w the second gets what the first one packed.
class WeightedByFactor {
 public:
  Status create(const CreateContext& c) { return factor_ = static_cast<float>(c.attributes.f("factor")), Status(); }
  Status prepare(PrepareContext& c) {
    const heddle_tensor& w = *c.input(1);
    packed_ = nullptr;
    if (!c.is_constant(1) || w.element_count == 0) return {};
    const auto* const from = static_cast<const float*>(w.data);
    packed_ = static_cast<const float*>(c.prepack(1, "times factor", w.byte_size, [&](void* to) {
      for (int64_t i = 0; i < w.element_count; ++i) static_cast<float*>(to)[i] = factor_ * from[i];
    }));
    return packed_ ? Status() : Status(HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for the packed weights");
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0), w = input<float>(c, 1);
    for (int64_t i = 0; i < x.size; ++i) {
      const float weight = packed_ ? packed_[i % w.size] : factor_ * w[i % w.size];
      output<float>(c, 0)[i] = x[i] * weight;
    }
    return {};
  }

 private:
  float factor_ = 1;
  const float* packed_ = nullptr;
};

}  // namespace

HEDDLE_PLUGIN("mistakes_options", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  const auto with = [](const char* name, Status (*rule)(InferContext&)) {
    return Op(name, "mistakes").in("x", f32).out("y", {}, f32).infer(rule);
  };
  const auto with_bias = [](const char* name) {
    return Op(name, "mistakes").in("x", f32).optional("b", f32).out("y", {}, f32).infer(infer_with_bias);
  };
  plugin.add(with_bias("BiasedFromItsEnd").example("f32[3] = 1 2 3, f32[3] = 10 20 30 -> f32[3] = 11 22 33", "by hand").cpu<biased>());
  plugin.add(op("SummedUp").attribute("mode", 0).cpu<summed_up>());
  plugin.add(with_bias("BiasedSum").attribute("mode", 0).example("f32[4], f32[4]; mode=2").cpu<biased_sum>());
  plugin.add(with("SumAlong", infer_sum_along)
                 .attribute("axis", 0)
                 .example("f32[2,3] = 1 2 3 4 5 6 -> f32[3] = 5 7 9", "by hand")
                 .example("f32[2,3] = 1 2 3 4 5 6; axis=-1 -> f32[2] = 6 15", "by hand")
                 .cpu<SumAlong>());
  plugin.add(with("Before", infer_before)
                 .attribute("border", "zero")
                 .example("f32[4] = 1 2 3 4 -> f32[4] = 0 1 2 3", "by hand")
                 .example("f32[5]; border=\"mirror\"")
                 .cpu<before>());
  plugin.add(op("Leaky").attribute("slope", 0.1).example("f32[3] = -1 0 1; slope=-0.5").cpu<leaky>());
  plugin.add(with("Padded", infer_padded)
                 .maybe("pads", HEDDLE_ATTRIBUTE_INTS)
                 .example("f32[2] = 1 2; pads=[1,1] -> f32[4] = 0 1 2 0", "by hand")
                 .example("f32[3]; pads=[1,3] -> f32[7]", "by hand")
                 .cpu<padded>());
  plugin.add(Op("MeanAndVariance", "mistakes")
                 .in("x", f32)
                 .out("mean", scalar(), f32)
                 .optional_out("variance", scalar(), f32)
                 .example("f32[4] = 1 2 3 4 -> f32[] = 2.5", "by hand")
                 .example("f32[4] = 1 2 3 4 -> f32[] = 2.5, f32[] = 1.25", "by hand")
                 .cpu<mean_and_variance>());
  plugin.add(op("Quantised").maybe("levels", HEDDLE_ATTRIBUTE_FLOATS).example("f32[3]; levels=[0.5,1.5]").cpu<Quantised>());
  plugin.add(op("Told").attribute("mode", 0).cpu<told>());
  const auto weighted = [](const char* name) {
    return Op(name, "mistakes").in("x", f32).in("w", f32).out("y", {}, f32).infer(infer_weighted);
  };
  plugin.add(weighted("Weighted").example("f32[2,4], f32[4]").example("f32[2,12], f32[12]").cpu<Weighted>());
  plugin.add(weighted("WeightedByFactor")
                 .attribute("factor", 1.0)
                 .example("f32[1,2] = 1 2, f32[2] = 3 4; factor=2.0 -> f32[1,2] = 6 16", "by hand")
                 .cpu<WeightedByFactor>());
  plugin.add(with("Windowed", infer_windowed)
                 .attribute("window", 3)
                 .example("f32[4] = 1 2 3 4 -> f32[4] = 1 3 6 9", "by hand")
                 .example("f32[20]; window=8")
                 .cpu<windowed>());
}
