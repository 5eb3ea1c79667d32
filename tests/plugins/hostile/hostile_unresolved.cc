// A plugin that calls an undefined function: refused when it is loaded, not in the middle of a run.
#include "heddle/op.h"
using namespace heddle::plugin;

extern "C" float heddle_test_function_of_nobody(float);

static Status twice(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = heddle_test_function_of_nobody(x[i]);
  return {};
}

HEDDLE_PLUGIN("hostile_unresolved", "1.0", plugin) {
  plugin.add(Op("Twice", "hostile").in("x").out("y", same_as("x")).cpu<twice>());
}
