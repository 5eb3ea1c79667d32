// Kernels whose results depend on how their tiles are split into calls, or on the order of those calls. In one call, in order, each is
// right. Each has this one mistake.
#include <algorithm>
#include <atomic>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();
constexpr int64_t chunk = 16;  // elements of a tile

int64_t chunks(const heddle_tensor& x) {
  return (x.element_count + chunk - 1) / chunk;
}

// Sums up to each element. They start again with each call of run().
class RunningSum {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(chunks(*c.input(0))), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    float sum = 0;
    for (int64_t i = begin * chunk; i < std::min(x.size, end * chunk); ++i) output<float>(c, 0)[i] = sum += x[i];
    return {};
  }
};

// Each element is half of itself and half of the result before it, which is another tile's where a tile begins.
class Decaying {
 public:
  Status prepare(PrepareContext& c) { return c.set_tiles(chunks(*c.input(0))), Status(); }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    const auto y = output<float>(c, 0);
    for (int64_t i = begin * chunk; i < std::min(x.size, end * chunk); ++i) y[i] = 0.5f * x[i] + (i > 0 ? 0.5f * y[i - 1] : 0.0f);
    return {};
  }
};

// Twice the rows of x. Each tile takes the next free row of the output, by a counter that all share.
class NextRow {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& x = *c.input(0);
    width_ = x.rank > 0 ? x.dims[x.rank - 1] : 1;
    c.set_tiles(width_ > 0 ? x.element_count / width_ : 0);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    for (int64_t row = begin; row < end; ++row) {
      const float* const x = input<float>(c, 0).data + row * width_;
      float* const y = output<float>(c, 0).data + next_++ * width_;
      for (int64_t i = 0; i < width_; ++i) y[i] = 2 * x[i];
    }
    return {};
  }
  Status finish(const RunContext&) const { return next_ = 0, Status(); }

 private:
  int64_t width_ = 1;
  mutable std::atomic<int64_t> next_{0};
};

// The sum of all elements, as partial sums that finish() adds in the order in which they were made.
class SumAsTheyCame {
 public:
  Status prepare(PrepareContext& c) {
    c.set_tiles(chunks(*c.input(0)));
    c.set_scratch(static_cast<uint64_t>(c.tiles()) * sizeof(float));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    for (int64_t tile = begin; tile < end; ++tile) {
      float sum = 0;
      for (int64_t i = tile * chunk; i < std::min(x.size, (tile + 1) * chunk); ++i) sum += x[i];
      step_scratch<float>(c)[came_++] = sum;
    }
    return {};
  }
  Status finish(const RunContext& c) const {
    float total = 0;
    const int64_t count = came_.exchange(0);
    for (int64_t i = 0; i < count; ++i) total += step_scratch<float>(c)[i];
    output<float>(c, 0)[0] = total;
    return {};
  }

 private:
  mutable std::atomic<int64_t> came_{0};
};

// x, cut to [-1, 1], squared by a table in scratch. Tile 0 fills the table, and the others assume that it is filled.
class SquaredByTable {
 public:
  Status prepare(PrepareContext& c) {
    c.set_tiles(chunks(*c.input(0)));
    c.set_scratch(size * sizeof(float));
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const auto x = input<float>(c, 0);
    float* const table = step_scratch<float>(c);
    for (int k = 0; begin == 0 && k < size; ++k) table[k] = static_cast<float>(k * k) / ((size - 1) * (size - 1));
    for (int64_t i = begin * chunk; i < std::min(x.size, end * chunk); ++i) {
      const float a = x[i] < 0 ? -x[i] : x[i];
      output<float>(c, 0)[i] = table[a < 1 ? static_cast<int>(a * (size - 1)) : size - 1];
    }
    return {};
  }

 private:
  static constexpr int size = 256;
};

}  // namespace

HEDDLE_PLUGIN("mistakes_tiles", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("RunningSum").example("f32[4] = 1 2 3 4 -> f32[4] = 1 3 6 10", "by hand").cpu<RunningSum>());
  plugin.add(op("Decaying").example("f32[2] = 4 4 -> f32[2] = 2 3", "by hand").cpu<Decaying>());
  plugin.add(op("NextRow").cpu<NextRow>());
  plugin.add(Op("SumAsTheyCame", "mistakes").in("x", f32).out("y", scalar(), f32).cpu<SumAsTheyCame>());
  plugin.add(op("SquaredByTable").cpu<SquaredByTable>());
}
