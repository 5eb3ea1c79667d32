// Kernels that use memory before they have written it, or leave elements of an output unwritten. Each has this one mistake.
#include <algorithm>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

// The sum of all elements: a partial sum for each 1024 of them, in scratch that is never set to zero.
class Total {
 public:
  Status prepare(PrepareContext& c) {
    tiles_ = (c.input(0)->element_count + 1023) / 1024;
    c.set_tiles(tiles_);
    c.set_scratch(static_cast<uint64_t>(tiles_) * sizeof(float));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t tile = begin; tile < end; ++tile)
      for (int64_t i = tile * 1024; i < std::min(x.size, tile * 1024 + 1024); ++i) step_scratch<float>(c)[tile] += x[i];
    return {};
  }
  Status finish(const RunContext& c) const {
    float total = 0;
    for (int64_t tile = 0; tile < tiles_; ++tile) total += step_scratch<float>(c)[tile];
    output<float>(c, 0)[0] = total;
    return {};
  }

 private:
  int64_t tiles_ = 0;
};

// For each row the sum of its even elements minus that of its odd ones. Both sums are in a thread's scratch, and continue from row to row.
class Alternating {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& x = *c.input(0);
    width_ = x.dims[x.rank - 1];
    c.set_tiles(c.output(0)->element_count);
    c.set_scratch(0, 2 * sizeof(float));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    float* const sums = thread_scratch<float>(c);
    for (int64_t row = begin; row < end; ++row) {
      const float* const x = input<float>(c, 0).data + row * width_;
      for (int64_t i = 0; i < width_; ++i) sums[i & 1] += x[i];
      output<float>(c, 0)[row] = sums[0] - sums[1];
    }
    return {};
  }

 private:
  int64_t width_ = 1;
};
Status infer_by_row(InferContext& c) {
  const Dims x = c.dims(0);
  if (x.rank < 1) return invalid("x is a scalar and has no rows");
  return c.set_dims(0, x.data, x.rank - 1), Status();
}

// The sum of each row, added to what is in the output already.
Status row_totals(In<float> x, Out<float> y) {
  const int64_t width = x.dims[-1];
  for (int64_t row = 0; row < y.size; ++row)
    for (int64_t i = 0; i < width; ++i) y[row] += x[row * width + i];
  return {};
}

// Computes four elements at a time. It does not write the remainder.
Status by_fours(In<float> x, Out<float> y) {
  for (int64_t i = 0; i + 4 <= x.size; i += 4)
    for (int64_t k = i; k < i + 4; ++k) y[k] = x[k] * x[k];
  return {};
}

// max(x, 0) and, if requested, how much was cut off: written only where something was.
Status cut(In<float> x, Out<float> y, Out<float> off) {
  for (int64_t i = 0; i < x.size; ++i) {
    y[i] = x[i] < 0 ? 0.0f : x[i];
    if (off && x[i] < 0) off[i] = -x[i];
  }
  return {};
}

// One tile for each thousand elements, rounded down: right for up to a thousand, and for whole thousands.
class ByThousands {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(std::max<int64_t>(1, c.input(0)->element_count / 1000)), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = begin * 1000; i < std::min(x.size, end * 1000); ++i) output<float>(c, 0)[i] = 3 * x[i];
    return {};
  }
};

// The mean of all elements, which must be 0 if there are none. In that case it writes nothing.
Status mean(In<float> x, Out<float> y) {
  if (x.size == 0) return {};
  float sum = 0;
  for (int64_t i = 0; i < x.size; ++i) sum += x[i];
  y[0] = sum / static_cast<float>(x.size);
  return {};
}

}  // namespace

HEDDLE_PLUGIN("mistakes_uninitialised", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  const auto by_row = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", {}, f32).infer(infer_by_row); };
  plugin.add(Op("Total", "mistakes").in("x", f32).out("y", scalar(), f32).cpu<Total>());
  plugin.add(by_row("Alternating").cpu<Alternating>());
  plugin.add(by_row("RowTotals").cpu<row_totals>());
  plugin.add(op("ByFours").example("f32[4] = 1 2 3 4 -> f32[4] = 1 4 9 16", "by hand").cpu<by_fours>());
  plugin.add(Op("Cut", "mistakes").in("x", f32).out("y", same_as("x"), f32).optional_out("off", same_as("x"), f32).cpu<cut>());
  plugin.add(op("ByThousands").cpu<ByThousands>());
  plugin.add(Op("Mean", "mistakes").in("x", f32).out("y", scalar(), f32).example("f32[4] = 1 2 3 6 -> f32[] = 3", "by hand").cpu<mean>());
}
