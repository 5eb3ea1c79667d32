// What docs/operator_guide.md shows of outputs: one that is kept for the gradient, and one that is the next version of a variable.
#include <cmath>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

// y = log(1 + exp(x)); p, its derivative, is there for the gradient.
template <class T>
Status soft_plus(In<T> x, Out<T> y, Out<T> p) {
  for (int64_t i = 0; i < x.size; ++i) {
    const T small = std::exp(-std::abs(x[i]));
    y[i] = std::max(x[i], T(0)) + std::log1p(small);
    p[i] = (x[i] < 0 ? small : T(1)) / (1 + small);
  }
  return {};
}

template <class T>
Status decay(In<T> w, In<T> rate, Out<T> next) {
  const T factor = 1 - rate[0];
  for (int64_t i = 0; i < w.size; ++i) next[i] = factor * w[i];
  return {};
}

constexpr heddle_dtype_set floats = dtypes<float, double>();

}  // namespace

HEDDLE_PLUGIN("guide_kept", "1.0", plugin) {
  plugin.add(Op("SoftPlus", "guide")
                 .doc("y = log(1 + exp(x)), p its derivative")
                 .in("x", floats)
                 .out("y", same_as("x"), floats)
                 .out("p", same_as("x"), floats)
                 .not_differentiable()
                 .gradient("Mul", {"dy", "p"}, {"dx"})
                 .cpu<soft_plus<float>>()
                 .cpu<soft_plus<double>>()
                 .example("f32[3] = 0 2 -1 -> f32[3] = 0.6931472 2.126928 0.3132617, f32[3] = 0.5 0.8807971 0.2689414", "NumPy"));
  plugin.add(Op("Decay", "guide")
                 .doc("w without a part of it")
                 .in("w", floats)
                 .in("rate", floats)
                 .dims("")
                 .updates("next", "w")
                 .cpu<decay<float>>()
                 .cpu<decay<double>>()
                 .example("f32[2] = 8 -4, f32[] = 0.25 -> f32[2] = 6 -3", "by hand"));
}
