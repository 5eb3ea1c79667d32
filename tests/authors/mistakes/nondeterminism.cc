// Kernels that give different results for the same inputs: by addresses, time, or data kept from earlier runs. Each has this one mistake.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "heddle/op.h"
using namespace heddle::plugin;

namespace {

constexpr heddle_dtype_set f32 = dtypes<float>();

void add(In<float> x, float little, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + little;
}

// x plus a small amount that depends on the address of x.
Status by_place(In<float> x, Out<float> y) {
  const uint64_t mixed = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(x.data)) * UINT64_C(0x9e3779b97f4a7c15);
  add(x, static_cast<float>(mixed >> 48) * 0x1p-20f, y);
  return {};
}

// The sum of all elements: those up to the next boundary of 256 bytes are summed separately, so that rounding depends on the address of x.
Status sum_from_boundary(In<float> x, Out<float> y) {
  const auto behind = static_cast<int64_t>(reinterpret_cast<uintptr_t>(x.data) % 256 / sizeof(float));
  const int64_t first = std::min<int64_t>(x.size, behind == 0 ? 0 : 64 - behind);
  float before = 0, rest = 0;
  for (int64_t i = 0; i < first; ++i) before += x[i];
  for (int64_t i = first; i < x.size; ++i) rest += x[i];
  y[0] = before + rest;
  return {};
}

// x plus a small amount that depends on the clock.
Status by_clock(In<float> x, Out<float> y) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  add(x, static_cast<float>(now % 4093) * 0x1p-20f, y);
  return {};
}

// x plus a small random number of the C library.
Status by_chance(In<float> x, Out<float> y) {
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] + static_cast<float>(std::rand() % 1024) * 0x1p-20f;
  return {};
}

// x plus a small amount for each earlier call, of any node.
Status by_calls(In<float> x, Out<float> y) {
  static std::atomic<int> calls{0};
  add(x, static_cast<float>(calls++ % 1024) * 0x1p-10f, y);
  return {};
}

// x plus a small amount for each earlier run of this node: its first run is right.
class ByRuns {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    add(input<float>(c, 0), static_cast<float>(runs_++ % 1024) * 0x1p-10f, output<float>(c, 0));
    return {};
  }

 private:
  mutable std::atomic<int> runs_{0};
};

// The largest magnitude; 1 if there is none.
float magnitude_of(In<float> x) {
  float magnitude = 0;
  for (int64_t i = 0; i < x.size; ++i) magnitude = std::max(magnitude, std::fabs(x[i]));
  return magnitude > 0 ? magnitude : 1;
}

// x divided by its largest magnitude, but by that of the first input that this node had.
class ByFirstInput {
 public:
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    if (magnitude_ == 0) magnitude_ = magnitude_of(x);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] / magnitude_;
    return {};
  }

 private:
  mutable std::atomic<float> magnitude_{0};
};

// x divided by the largest magnitude of the first input that any node of this process had.
Status by_very_first_input(In<float> x, Out<float> y) {
  static const float magnitude = magnitude_of(x);
  for (int64_t i = 0; i < x.size; ++i) y[i] = x[i] / magnitude;
  return {};
}

// x plus the number of the column. If it is prepared again for other shapes, it still uses the earlier width.
class ByFirstShape {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& x = *c.input(0);
    if (width_ == 0) width_ = x.rank > 0 ? x.dims[x.rank - 1] : 1;
    return {};
  }
  Status run(const RunContext& c, int64_t, int64_t) const {
    const auto x = input<float>(c, 0);
    for (int64_t i = 0; i < x.size; ++i) output<float>(c, 0)[i] = x[i] + static_cast<float>(i % width_);
    return {};
  }

 private:
  int64_t width_ = 0;
};

}  // namespace

HEDDLE_PLUGIN("mistakes_nondeterminism", "1.0", plugin) {
  const auto op = [](const char* name) { return Op(name, "mistakes").in("x", f32).out("y", same_as("x"), f32); };
  plugin.add(op("ByPlace").cpu<by_place>());
  plugin.add(Op("SumFromBoundary", "mistakes").in("x", f32).out("y", scalar(), f32).cpu<sum_from_boundary>());
  plugin.add(op("ByClock").cpu<by_clock>());
  plugin.add(op("ByChance").cpu<by_chance>());
  plugin.add(op("ByCalls").cpu<by_calls>());
  plugin.add(op("ByRuns").cpu<ByRuns>());
  plugin.add(op("ByFirstInput").cpu<ByFirstInput>());
  plugin.add(op("ByVeryFirstInput").example("f32[2] = 1 -2 -> f32[2] = 0.5 -1", "by hand").cpu<by_very_first_input>());
  plugin.add(op("ByFirstShape").cpu<ByFirstShape>());
}
