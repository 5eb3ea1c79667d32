// bench::Work: uses the processor for as many iterations as an input says when it runs, and depends on any number of values. Built apart
// from the runtime, so that no compiler sees how much work a net is.
#include "heddle/op.h"

using namespace heddle::plugin;

static Status work(In<int64_t> iterations, Ins<float>, Out<float> y) {
  uint64_t state = 1;
  for (int64_t i = 0; i < iterations[0]; ++i) state = state * 6364136223846793005u + 1442695040888963407u;
  y[0] = static_cast<float>(state >> 40);
  return {};
}

HEDDLE_PLUGIN("bench", "1.0", plugin) {
  plugin.add(Op("Work", "bench")
                 .doc("y[0] = a number that takes `iterations` steps to find; x only orders")
                 .in("iterations", dtypes<int64_t>(), "I")
                 .on_host()
                 .variadic("x", dtypes<float>())
                 .out("y", same_as("x"), dtypes<float>())
                 .cpu<work>());
}
