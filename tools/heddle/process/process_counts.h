// What the whole process asks of the system while somebody counts: heap memory and threads, for run's "steady_state_allocations" and for
// `plugin check`.
//
// The tool replaces operator new and delete, malloc and its relatives, and pthread_create, for all libraries that it loads. Builds with
// sanitizers keep the sanitizer's and count nothing.
#pragma once

#include <cstdint>

namespace heddle::tool {

struct ProcessCounts {
  int64_t allocations = 0;  // but for those that oneDNN makes inside its own calls, told by the calling library
  int64_t kept = 0;         // allocations less releases, of all
  int64_t threads = 0;      // started

  // While somebody counted, so far.
  static ProcessCounts so_far();
  static bool available();
};

// Counts from here on, if `active`, as long as it lives. One at a time.
class Counting {
 public:
  explicit Counting(bool active = true);
  ~Counting();
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;
};

}  // namespace heddle::tool
