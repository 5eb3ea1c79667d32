// Dice: the random numbers that the mutators draw. A case is a function of its seed alone, on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <random>

namespace heddle::fuzz {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  size_t below(size_t n) { return n == 0 ? 0 : static_cast<size_t>(engine_() % n); }
  bool one_in(size_t n) { return below(n) == 0; }
  template <class Container>
  auto& pick(Container& from) {
    return *std::next(std::begin(from), static_cast<std::ptrdiff_t>(below(std::size(from))));
  }
  // Returns a number for extents, axes and counts: mostly small, sometimes at an edge of something.
  int64_t integer() {
    static constexpr int64_t edges[] = {
        -1,   0,     1,     2,  3,  4,    5,       7,         8,         16,        63,        255,           256,
        4096, 65535, 65536, -2, -3, -128, 1 << 20, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, INT64_MAX / 2, 1LL << 33};
    return one_in(3) ? edges[below(std::size(edges))] : static_cast<int64_t>(below(9)) - 2;
  }
  double real() {
    static constexpr double edges[] = {0, -0.0, 1, -1, 0.5, 2, 1e-5, 1e300, -1e300, 5e-324, __builtin_inf(), __builtin_nan("")};
    return edges[below(std::size(edges))];
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace heddle::fuzz
