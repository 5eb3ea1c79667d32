// A third party's operator, built from an installed Heddle: y = x * x.
#include "heddle/op.h"
using namespace heddle::plugin;

static Status square(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] * x[i];
  return {};
}

HEDDLE_PLUGIN("square", "1.0", plugin) {
  plugin.add(Op("Square", "square").in("x").out("y", same_as("x")).in_place("y", "x").cpu<square>().elementwise());
}
