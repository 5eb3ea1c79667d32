// What docs/writing_an_operator.md shows of f16 and bf16: one function for all floating-point dtypes.
#include <cmath>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

template <class T>
Status softsign(In<T> x, Out<T> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    const auto value = static_cast<wide_t<T>>(x[i]);
    y[i] = static_cast<T>(value / (1 + std::fabs(value)));
  }
  return {};
}

}  // namespace

HEDDLE_PLUGIN("guide_widths", "1.0", plugin) {
  plugin.add(Op("Softsign", "guide")
                 .doc("x / (1 + |x|)")
                 .in("x", float_dtypes)
                 .out("y", same_as("x"), float_dtypes)
                 .in_place("y", "x")
                 .cpu<softsign<float>>()
                 .elementwise()
                 .cpu<softsign<double>>()
                 .elementwise()
                 .cpu<softsign<f16>>()
                 .elementwise()
                 .cpu<softsign<bf16>>()
                 .elementwise()
                 .example("f32[4] = -3 0 1 0.25 -> f32[4] = -0.75 0 0.5 0.2", "by hand"));
}
