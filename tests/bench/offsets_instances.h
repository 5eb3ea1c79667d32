// Packing problems with known answers, for the tests and the benchmark of the offset planner. Deterministic in their seeds.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <random>
#include <vector>

#include "memory/offsets/offsets.h"

namespace heddle::offsets {

// Uniform in [low, high]; the same on every machine.
inline int64_t draw(std::mt19937_64& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random() % static_cast<uint64_t>(high - low + 1));
}

// A slab of `height` bytes over `steps` steps is cut into about `count` rectangles, straight across or in pinwheels (which no sequence of
// straight cuts can undo); then `holes` percent of those that do not cross the middle step are removed. The rest fits in `height`, and not
// in less: the middle step is full. MiniMalloc's hard instances are of this kind.
inline Problem planted(size_t count, int64_t steps, int64_t height, int64_t unit, int holes, uint64_t seed) {
  struct Rectangle {
    int64_t first, last, low, high;
    int64_t area() const { return (last - first) * (high - low); }
  };
  std::mt19937_64 random(seed);
  std::vector<Rectangle> all = {{0, steps, 0, height / unit}};
  const auto by_area = [](const Rectangle& a, const Rectangle& b) { return a.area() < b.area(); };
  while (all.size() < count) {
    // Mostly cuts the largest rectangle, so that sizes stay mixed but not extreme.
    std::pop_heap(all.begin(), all.end(), by_area);
    const Rectangle r = all.back();
    all.pop_back();
    const auto add = [&](int64_t first, int64_t last, int64_t low, int64_t high) {
      if (first >= last || low >= high) return;
      all.push_back({first, last, low, high});
      std::push_heap(all.begin(), all.end(), by_area);
    };
    const int64_t wide = r.last - r.first, tall = r.high - r.low;
    if (wide < 2 && tall < 2) {
      all.push_back(r);
      std::push_heap(all.begin(), all.end(), by_area);
      break;
    }
    if (wide >= 3 && tall >= 3 && random() % 3 == 0) {
      const int64_t x1 = draw(random, r.first + 1, r.last - 2), x2 = draw(random, x1 + 1, r.last - 1);
      const int64_t y1 = draw(random, r.low + 1, r.high - 2), y2 = draw(random, y1 + 1, r.high - 1);
      add(r.first, x2, r.low, y1);
      add(x2, r.last, r.low, y2);
      add(x1, r.last, y2, r.high);
      add(r.first, x1, y1, r.high);
      add(x1, x2, y1, y2);
    } else if (tall < 2 || (wide >= 2 && random() % 2 == 0)) {
      const int64_t x = draw(random, r.first + 1, r.last - 1);
      add(r.first, x, r.low, r.high);
      add(x, r.last, r.low, r.high);
    } else {
      const int64_t y = draw(random, r.low + 1, r.high - 1);
      add(r.first, r.last, r.low, y);
      add(r.first, r.last, y, r.high);
    }
  }
  Problem problem;
  const int64_t middle = steps / 2;
  for (const Rectangle& r : all) {
    const bool crosses = r.first <= middle && middle < r.last;
    if (!crosses && draw(random, 0, 99) < holes) continue;
    problem.buffers.push_back({r.first, r.last, (r.high - r.low) * unit, 1});
  }
  for (size_t i = problem.buffers.size(); i > 1; --i) std::swap(problem.buffers[i - 1], problem.buffers[random() % i]);
  return problem;
}

// Buffers of a serial net: one is created at each step and lives a few steps; every `stash`-th lives until its mirror step near the end,
// like activations of a training step (0: none).
inline Problem serial_net(size_t count, size_t stash, uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem;
  problem.buffers.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto first = static_cast<int64_t>(i);
    int64_t last = first + 2 + static_cast<int64_t>(std::countr_zero(random() | 256)) * 2;
    if (stash != 0 && i % stash == 0 && i < count / 2) last = static_cast<int64_t>(2 * count - i);
    problem.buffers.push_back({first, last, 64 * draw(random, 1, 4096), 64});
  }
  return problem;
}

// Random lifetimes and sizes.
inline Problem random_lives(size_t count, int64_t steps, int64_t longest, int64_t max_bytes, uint64_t seed) {
  std::mt19937_64 random(seed);
  Problem problem;
  for (size_t i = 0; i < count; ++i) {
    const int64_t first = draw(random, 0, steps - 1);
    problem.buffers.push_back({first, first + draw(random, 1, longest), draw(random, 1, max_bytes), int64_t{1} << draw(random, 0, 3)});
  }
  return problem;
}

}  // namespace heddle::offsets
