// An operator whose kernel allocates heap memory three times in each run: run's "steady_state_allocations" must count them.
#include <memory>
#include <vector>

#include "heddle/op.h"
using namespace heddle::plugin;

static Status allocate(In<float> x, Out<float> y) {
  const auto once = std::make_unique<float>(x[0]);
  const std::vector<float> copy(x.data, x.data + x.size), again(copy);
  for (int64_t i = 0; i < x.size; ++i) y[i] = again[static_cast<size_t>(i)] + *once;
  return {};
}

HEDDLE_PLUGIN("allocates", "1.0", plugin) {
  plugin.add(Op("Allocates", "allocates").doc("y = x + x[0], by a detour").in("x").out("y", same_as("x")).cpu<allocate>());
}
