// An output that is the next version of a variable.
#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

template <class T>
Status decay(In<T> w, In<T> rate, Out<T> next) {
  const T factor = 1 - rate[0];
  for (int64_t i = 0; i < w.size; ++i) next[i] = factor * w[i];
  return {};
}

constexpr heddle_dtype_set floats = dtypes<float, double>();

}  // namespace

HEDDLE_PLUGIN("guide_kept", "1.0", plugin) {
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
