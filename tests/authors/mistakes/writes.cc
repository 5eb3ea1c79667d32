// Kernels that write where they must not: beside an output or scratch, into an input or a packed constant. Each has this one mistake.
#include <algorithm>
#include <cmath>
#include <limits>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// The sum of the elements before each one. It continues to the sum of all, for which there is no room.
Status sums_before(In<float> x, Out<float> y) {
  if (x.size > 0) y[0] = 0;
  for (int64_t i = 0; i < x.size; ++i) y[i + 1] = y[i] + x[i];
  return {};
}

// All elements one place to the left, followed by a zero. The first one has no place to go to.
Status shifted_left(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i - 1] = x[i];
  if (x.size > 0) y[x.size - 1] = 0;
  return {};
}

// A copy, with a mark 4 KiB past its end.
Status marked(In<float> x, Out<float> y) {
  std::copy_n(x.data, x.size, y.data);
  if (x.size > 0) y[x.size + 1024] = 0;
  return {};
}

// Pairs are written at once, with a zero as the second one if there is none: past the end of an odd length.
Status paired(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; i += 2) {
    y[i] = 2 * x[i];
    y[i + 1] = i + 1 < x.size ? 2 * x[i + 1] : 0.0f;
  }
  return {};
}

// Reverses x through a copy in scratch, and writes a mark after it for which it did not reserve room.
class Backwards {
 public:
  Status prepare(PrepareContext& c) { return c.set_scratch(c.input(0)->byte_size), Status(); }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    const auto y = output<float>(c, 0);
    if (x.size == 0) return {};
    float* const copy = step_scratch<float>(c);
    std::copy_n(x.data, x.size, copy);
    copy[x.size] = 0;
    for (int64_t i = 0; i < x.size; ++i) y[i] = copy[x.size - 1 - i];
    return {};
  }
};

// The softmax of each row, one tile for each row. A thread's scratch holds 64 columns, whatever the width is.
class Shares {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& x = *c.input(0);
    width_ = x.rank > 0 ? x.dims[x.rank - 1] : 1;
    c.set_tiles(width_ > 0 ? x.element_count / width_ : 0);
    c.set_scratch(0, 64 * sizeof(float));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    float* const powers = thread_scratch<float>(c);
    for (int64_t row = begin; row < end; ++row) {
      const float* const x = input<float>(c, 0).data + row * width_;
      float* const y = output<float>(c, 0).data + row * width_;
      float sum = 0;
      for (int64_t i = 0; i < width_; ++i) sum += powers[i] = std::exp(x[i]);
      for (int64_t i = 0; i < width_; ++i) y[i] = powers[i] / sum;
    }
    return {};
  }

 private:
  int64_t width_ = 1;
};

// The integer part and, if requested, the fraction, after which it writes one zero too many.
Status parts(In<float> x, Out<float> whole, Out<float> rest) {
  for (int64_t i = 0; i < x.size; ++i) whole[i] = std::trunc(x[i]);
  if (!rest) return {};
  for (int64_t i = 0; i < x.size; ++i) rest[i] = x[i] - whole[i];
  rest[x.size] = 0;
  return {};
}

// The softmax of all elements. To save a buffer it subtracts the largest element in place, in x.
Status all_shares(In<float> x, Out<float> y) {
  auto* const moved = const_cast<float*>(x.data);
  float top = -std::numeric_limits<float>::infinity(), sum = 0;
  for (int64_t i = 0; i < x.size; ++i) top = std::max(top, x[i]);
  for (int64_t i = 0; i < x.size; ++i) moved[i] -= top;
  for (int64_t i = 0; i < x.size; ++i) sum += y[i] = std::exp(moved[i]);
  for (int64_t i = 0; i < x.size; ++i) y[i] /= sum;
  return {};
}

// The index of the first element below zero, or the number of elements. It overwrites the last one with a sentinel during the search.
Status first_below_zero(In<float> x, Out<int64_t> y) {
  y[0] = x.size;
  if (x.size == 0) return {};
  float* const last = const_cast<float*>(x.data) + x.size - 1;
  const float kept = *last;
  int64_t at = 0;
  *last = -1;
  while (!(x[at] < 0)) ++at;
  *last = kept;
  if (at < x.size - 1 || kept < 0) y[0] = at;
  return {};
}

// x minus the given mean. It updates that mean, which is an input.
Status centred(In<float> x, In<float> mean, Out<float> y) {
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += x[i];
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] - mean[0];
  if (x.size > 0) *const_cast<float*>(mean.data) = 0.9f * mean[0] + 0.1f * sum / static_cast<float>(x.size);
  return {};
}
Status infer_centred(InferContext& c) {
  if (c.input(1).element_count != 1) return invalid("the mean is " + dims_text(c.dims(1)) + ", expected one number");
  return c.set_dims(0, c.dims(0)), Status();
}

// The product of a matrix and a vector. If the vector is constant, a packed copy has one place more, in which each run accumulates.
class Products {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& w = *c.input(1);
    packed_ = nullptr;
    if (!c.is_constant(1) || w.element_count == 0) return {};
    const auto* const from = static_cast<const float*>(w.data);
    packed_ = static_cast<const float*>(c.prepack(1, "with a sum", w.byte_size + sizeof(float), [&](void* to) {
      std::copy_n(from, w.element_count, static_cast<float*>(to));
      static_cast<float*>(to)[w.element_count] = 0;
    }));
    return packed_ ? Status() : Status(HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for the packed vector");
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0), w = input<float>(c, 1);
    const auto y = output<float>(c, 0);
    float own = 0;
    float* const sum = packed_ ? const_cast<float*>(packed_) + w.size : &own;
    const float* const from = packed_ ? packed_ : w.data;
    for (int64_t row = 0; row < y.size; ++row) {
      *sum = 0;
      for (int64_t i = 0; i < w.size; ++i) *sum += x[row * w.size + i] * from[i];
      y[row] = *sum;
    }
    return {};
  }

 private:
  const float* packed_ = nullptr;
};
Status infer_products(InferContext& c) {
  const Dims x = c.dims(0), w = c.dims(1);
  if (x.rank != 2 || w.rank != 1 || x[1] != w[0])
    return invalid("x is " + dims_text(x) + ", w " + dims_text(w) + ": expected [m, n] and [n]");
  return c.set_dims(0, {x[0]}), Status();
}

}  // namespace

HEDDLE_PLUGIN("mistakes_writes", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("SumsBefore").example("f32[4] = 1 2 3 4 -> f32[4] = 0 1 3 6", "by hand").cpu<sums_before>());
  plugin.add(op("ShiftedLeft").cpu<shifted_left>());
  plugin.add(op("Marked").cpu<marked>());
  plugin.add(op("Paired").example("f32[2] = 1 2 -> f32[2] = 2 4", "by hand").cpu<paired>());
  plugin.add(op("Backwards").cpu<Backwards>());
  plugin.add(op("Shares").cpu<Shares>());
  plugin.add(Op("Parts", "mistakes").in("x", f32).out("whole", same_as("x"), f32).optional_out("rest", same_as("x"), f32).cpu<parts>());
  plugin.add(op("AllShares").cpu<all_shares>());
  plugin.add(Op("FirstBelowZero", "mistakes")
                 .in("x", f32)
                 .out_as("y", HEDDLE_I64, scalar())
                 .example("f32[4] = 1 2 -3 -4 -> i64[] = 2", "by hand")
                 .cpu<first_below_zero>());
  plugin.add(Op("Centred", "mistakes")
                 .in("x", f32)
                 .in("mean", f32)
                 .out("y", {}, f32)
                 .infer(infer_centred)
                 .example("f32[3] = 1 2 3, f32[1] = 1 -> f32[3] = 0 1 2", "by hand")
                 .cpu<centred>());
  plugin.add(Op("Products", "mistakes")
                 .in("x", f32)
                 .in("w", f32)
                 .out("y", {}, f32)
                 .infer(infer_products)
                 .example("f32[2,3] = 1 2 3 4 5 6, f32[3] = 1 0 2 -> f32[2] = 7 16", "by hand")
                 .cpu<Products>());
}
