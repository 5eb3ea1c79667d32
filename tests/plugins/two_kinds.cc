// An operator with a kernel for the host and one for a vendor's devices, as an author writes it who has such a device.
#include "heddle/op.h"

using namespace heddle::plugin;

namespace {

Status twice(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = 2 * x[i];
  return {};
}

}  // namespace

HEDDLE_PLUGIN("two_kinds", "1.0", plugin) {
  plugin.add(Op("Twice", "two_kinds")
                 .in("x", dtypes<float>())
                 .out("y", same_as("x"), dtypes<float>())
                 .gradient("Add", {"dy", "dy"}, {"dx"})
                 .cpu<twice>()
                 .kernel<twice>("cuda")
                 .kernel_name("two_kinds:twice_on_gpu"));
}
