// Kernels that read outside of an input, or from an empty input. Each has this one mistake.
#include <algorithm>
#include <cmath>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// The mean of each element and the next one. The last one has none.
Status smoothed(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = (x[i] + x[i + 1]) / 2;
  return {};
}

// The difference to the element before. The first one has none.
Status differences(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] - x[i - 1];
  return {};
}

// Twice x. It prefetches by a read 4 KiB ahead, also past the end. No result depends on it.
Status doubled_ahead(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) {
    static_cast<void>(*static_cast<const volatile float*>(x.data + i + 1024));
    y[i] = 2 * x[i];
  }
  return {};
}

// Twice x. Loads each element one step before it needs it, and at the end one that it never needs.
Status doubled_in_steps(In<float> x, Out<float> y) {
  const volatile float* const from = x.data;
  if (x.size == 0) return {};
  float next = from[0];
  for (int64_t i = 0; i < x.size; ++i) {
    const float now = next;
    next = from[i + 1];
    y[i] = 2 * now;
  }
  return {};
}

// x, cut to [0, 1], looked up in a table with linear interpolation. At 1 it multiplies the number past the end of the table by 0.
Status interpolated(In<float> x, In<float> table, Out<float> y) {
  const int64_t last = table.size - 1;
  for (int64_t i = 0; i < x.size; ++i) {
    const float at = x[i] > 0 ? std::min(x[i], 1.0f) * static_cast<float>(last) : 0.0f;
    const auto k = static_cast<int64_t>(at);
    y[i] = table[k] + (at - static_cast<float>(k)) * (table[k + 1] - table[k]);
  }
  return {};
}
Status infer_interpolated(InferContext& c) {
  if (c.dims(1).rank != 1 || c.dims(1)[0] < 1) return invalid("the table is " + dims_text(c.dims(1)) + ", expected one row of numbers");
  return c.set_dims(0, c.dims(0)), Status();
}

// Neighbours change places. If the length is odd, the last one has no neighbour.
Status swapped(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i ^ 1];
  return {};
}

// x plus the bias, each element of which is averaged with the next one; without a bias a copy.
Status biased(In<float> x, OptionalIn<float> b, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = b ? x[i] + (b[i] + b[i + 1]) / 2 : x[i];
  return {};
}
Status infer_biased(InferContext& c) {
  if (c.has_input(1) && dims_text(c.dims(0)) != dims_text(c.dims(1)))
    return invalid("x is " + dims_text(c.dims(0)) + ", the bias " + dims_text(c.dims(1)));
  return c.set_dims(0, c.dims(0)), Status();
}

// The largest element; for none it must be -inf. It starts with the first one, without checking that there is one.
Status largest(In<float> x, Out<float> y) {
  float best = x[0];
  for (int64_t i = 1; i < x.size; ++i) best = std::max(best, x[i]);
  y[0] = best;
  return {};
}

// The product, broadcast by the shape rule. The kernel assumes that both inputs have all elements.
Status product(In<float> a, In<float> b, Out<float> y) {
  for (int64_t i = 0; i < y.size; ++i) y[i] = a[i] * b[i];
  return {};
}

// Each row plus the row below it. There is none below the last one.
Status row_sums(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + x[i + x.dims[1]];
  return {};
}
Status infer_rows(InferContext& c) {
  if (c.dims(0).rank != 2) return invalid("x is " + dims_text(c.dims(0)) + ", expected rank 2");
  return c.set_dims(0, c.dims(0)), Status();
}

// Like Smoothed, with a copy in scratch that ends where x ends.
class SmoothedInScratch {
 public:
  Status prepare(PrepareContext& c) { return c.set_scratch(c.input(0)->byte_size), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    float* const copy = step_scratch<float>(c);
    for (int64_t i = 0; i < x.size; ++i) copy[i] = x[i];
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = (copy[i] + copy[i + 1]) / 2;
    return {};
  }
};

}  // namespace

HEDDLE_PLUGIN("mistakes_reads", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("Smoothed").cpu<smoothed>());
  plugin.add(op("Differences").cpu<differences>());
  plugin.add(op("DoubledAhead").cpu<doubled_ahead>());
  plugin.add(op("DoubledInSteps").cpu<doubled_in_steps>());
  plugin.add(Op("Interpolated", "mistakes")
                 .in("x", f32)
                 .in("table", f32)
                 .out("y", {}, f32)
                 .infer(infer_interpolated)
                 .example("f32[3] = 0 0.5 1, f32[2] = 1 3 -> f32[3] = 1 2 3", "by hand")
                 .cpu<interpolated>());
  plugin.add(op("Swapped").example("f32[4] = 1 2 3 4 -> f32[4] = 2 1 4 3", "by hand").cpu<swapped>());
  plugin.add(Op("Biased", "mistakes").in("x", f32).optional("b", f32).out("y", {}, f32).infer(infer_biased).cpu<biased>());
  plugin.add(
      Op("Largest", "mistakes").in("x", f32).out("y", scalar(), f32).example("f32[3] = 3 -1 2 -> f32[] = 3", "by hand").cpu<largest>());
  plugin.add(Op("Product", "mistakes").in("a", f32).in("b", f32).out("y", broadcast(), f32).example("f32[4,3], f32[3]").cpu<product>());
  plugin.add(Op("RowSums", "mistakes").in("x", f32).out("y", {}, f32).infer(infer_rows).cpu<row_sums>());
  plugin.add(op("SmoothedInScratch").cpu<SmoothedInScratch>());
}
