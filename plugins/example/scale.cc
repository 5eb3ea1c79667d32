// The README's operator, whole: y = factor * x.
#include "heddle/op.h"
using namespace heddle::plugin;

struct Factor {
  explicit Factor(const Attributes& attributes) : value(static_cast<float>(attributes.f("factor"))) {}
  float value;
};

static Status scale(In<float> x, const Factor& factor, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = factor.value * x[i];
  return {};
}

HEDDLE_PLUGIN("example", "1.0", plugin) {
  plugin.add(Op("Scale", "example")
                 .doc("Multiplies each element with factor.")
                 .formula("y = factor x")
                 .in("x")
                 .out("y", same_as("x"))
                 .attribute("factor", 1.0)
                 .in_place("y", "x")
                 .gradient("Scale", {"dy"}, {"dx"})
                 .cpu<scale>()
                 .elementwise());
}
