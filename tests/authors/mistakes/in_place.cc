// Kernels that declare that they can compute in place, or slice by slice, and cannot. With separate memory, and in one piece, they are
// right. Each has this one mistake.
#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

Status infer_alike(InferContext& c) {
  for (uint32_t i = 1; i < c.input_count(); ++i)
    if (dims_text(c.dims(i)) != dims_text(c.dims(0)))
      return invalid("input " + std::to_string(i) + " is " + dims_text(c.dims(i)) + ", input 0 is " + dims_text(c.dims(0)));
  return c.set_dims(0, c.dims(0)), Status();
}

// ---------------------------------------------------------------- bytes of an input

// Reverses x. In place, the second half is made of elements that are already overwritten.
Status backwards(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[x.size - 1 - i];
  return {};
}

// The difference to the element before, which in place is a difference already.
Status differences(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = i > 0 ? x[i] - x[i - 1] : x[i];
  return {};
}

// The softmax of all elements. It sums x after y has been written.
Status shares(In<float> x, Out<float> y) {
  float top = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int64_t i = 0; i < x.size; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < x.size; ++i) y[i] = std::exp(x[i] - top);
  for (int64_t i = 0; i < x.size; ++i) sum += std::exp(x[i] - top);
  for (int64_t i = 0; i < x.size; ++i) y[i] /= sum;
  return {};
}

// a times b reversed. It would be right in the bytes of a; it may also be given those of b.
Status crossed(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < a.size; ++i) y[i] = a[i] * b[b.size - 1 - i];
  return {};
}

// w - dw, the next version of the variable w, and the distance moved: computed from w after the next version has overwritten it.
Status updated(In<float> w, In<float> dw, Out<float> next, Out<float> way) {
  float sum = 0;
  for (int64_t i = 0; i < w.size; ++i) next[i] = w[i] - dw[i];
  for (int64_t i = 0; i < w.size; ++i) sum += std::fabs(next[i] - w[i]);
  way[0] = sum;
  return {};
}

// ---------------------------------------------------------------- slices

// Sums up to each element, but only within the slice that it is given.
Status running_sum(In<float> x, Out<float> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) y[i] = sum += x[i];
  return {};
}

// x minus its mean, but takes the mean of the slice.
Status centred(In<float> x, Out<float> y) {
  double sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += static_cast<double>(x[i]);
  const auto mean = static_cast<float>(x.size > 0 ? sum / static_cast<double>(x.size) : 0.0);
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] - mean;
  return {};
}

}  // namespace

HEDDLE_PLUGIN("mistakes_in_place", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("BackwardsInPlace").in_place("y", "x").cpu<backwards>());
  plugin.add(op("DifferencesInPlace").in_place("y", "x").cpu<differences>());
  plugin.add(op("SharesInPlace").in_place("y", "x").cpu<shares>());
  plugin.add(
      Op("CrossedInPlace", "mistakes").in("a", f32).in("b", f32).out("y", {}, f32).infer(infer_alike).in_place("y", "b").cpu<crossed>());
  plugin.add(Op("Updated", "mistakes")
                 .in("w", f32)
                 .in("dw", f32)
                 .out("next", {}, f32)
                 .out("way", scalar(), f32)
                 .infer(infer_alike)
                 .updates("next", "w")
                 .example("f32[2] = 1 2, f32[2] = 0.5 -1 -> f32[2] = 0.5 3, f32[] = 1.5", "by hand")
                 .cpu<updated>());
  plugin.add(op("RunningSumBySlices").cpu<running_sum>().elementwise());
  plugin.add(op("CentredBySlices").cpu<centred>().elementwise());
}
