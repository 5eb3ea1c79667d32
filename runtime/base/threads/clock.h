// Ticks: the cheapest monotonic clock available. The time stamp counter where the processor guarantees that it never stops nor changes its
// rate, else steady_clock's nanoseconds. All threads; differences of ticks mean time, absolute values mean nothing.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace heddle {
namespace clock_detail {

inline uint64_t steady_ns() noexcept {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

// "Invariant TSC": bit 8 of edx in leaf 0x80000007.
inline bool has_steady_counter() noexcept {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0x80000007u, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
  return false;
#endif
}

inline const bool steady_counter = has_steady_counter();

}  // namespace clock_detail

inline uint64_t ticks() noexcept {
#if defined(__x86_64__)
  if (clock_detail::steady_counter) [[likely]]
    return __builtin_ia32_rdtsc();  // <x86intrin.h>'s __rdtsc, without two megabytes of other declarations in most files
#endif
  return clock_detail::steady_ns();
}

namespace clock_detail {

struct Instant {
  uint64_t ns = 0;
  uint64_t ticks = 0;
};

// Reads both clocks at one instant: of a few attempts, the one that took the least time between its two readings of steady_clock.
inline Instant both_clocks() noexcept {
  Instant best;
  uint64_t least = UINT64_MAX;
  for (int attempt = 0; attempt < 5; ++attempt) {
    const uint64_t before = steady_ns();
    const uint64_t between = heddle::ticks();
    const uint64_t after = steady_ns();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + (after - before) / 2, between};
  }
  return best;
}

// Waits a millisecond: 0.01% of error.
inline double calibrate() noexcept {
  if (!steady_counter) return 1.0;
  const Instant begin = both_clocks();
  while (steady_ns() - begin.ns < 1'000'000) {
  }
  const Instant end = both_clocks();
  return static_cast<double>(end.ns - begin.ns) / static_cast<double>(std::max<uint64_t>(1, end.ticks - begin.ticks));
}

}  // namespace clock_detail

// Calibrated on first use, which takes a millisecond: call it once before anything is timed.
inline double ns_per_tick() noexcept {
  static const double factor = clock_detail::calibrate();
  return factor;
}
inline double ticks_to_ns(uint64_t difference) noexcept {
  return static_cast<double>(difference) * ns_per_tick();
}
// For wait_for: returns the time left until the deadline, rounded up; 0: it has passed.
inline std::chrono::nanoseconds left_until(uint64_t deadline_ticks) noexcept {
  const uint64_t now = ticks();
  return std::chrono::nanoseconds(now < deadline_ticks ? 1 + static_cast<int64_t>(ticks_to_ns(deadline_ticks - now)) : 0);
}
// Returns the deadline in nanoseconds of steady_clock (CLOCK_MONOTONIC), for plugins; 0: there is none.
inline int64_t steady_deadline_ns(uint64_t deadline_ticks) noexcept {
  return deadline_ticks == 0 ? 0 : static_cast<int64_t>(clock_detail::steady_ns()) + left_until(deadline_ticks).count();
}
// Returns at most the ticks of some 140 years, so that the result can be added to a time.
inline uint64_t ns_to_ticks(double ns) noexcept {
  const double ticks = ns / ns_per_tick();
  return ticks < 0x1p62 ? static_cast<uint64_t>(ticks) : uint64_t{1} << 62;
}

}  // namespace heddle
