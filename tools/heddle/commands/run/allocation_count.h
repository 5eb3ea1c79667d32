// How often a run asks for heap memory, for run's "steady_state_allocations".
//
// The tool replaces operator new, the one way in which the runtime, its plugins and oneTBB allocate, and counts the calls of all threads
// while an AllocationCount lives. oneDNN allocates inside its own calls; those are told by the calling library and left out. Builds with
// sanitizers keep the sanitizer's operators and count nothing.
#pragma once

#include <cstdint>

namespace heddle::tool {

class AllocationCount {
 public:
  // Counts from here on if `active`. One at a time.
  explicit AllocationCount(bool active);
  ~AllocationCount();
  AllocationCount(const AllocationCount&) = delete;
  AllocationCount& operator=(const AllocationCount&) = delete;

  static bool available();
  // Of all counts so far.
  static int64_t total();
};

}  // namespace heddle::tool
