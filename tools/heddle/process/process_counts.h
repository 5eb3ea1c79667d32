// Counts the heap memory and threads that the whole process requests while a Counting is active, for run's "steady_state_allocations" and
// for `plugin check`.
//
// The tool replaces operator new and delete, malloc and its relatives, and pthread_create, for all libraries that it loads. Builds with
// sanitizers keep the sanitizer's and count nothing.
#pragma once

#include <cstdint>

namespace heddle::tool {

struct ProcessCounts {
  int64_t allocations = 0;  // except those of oneDNN, libjpeg and libpng, recognised by the calling library
  int64_t kept = 0;         // all allocations less releases
  int64_t threads = 0;      // started

  // The counts so far, while counting was active.
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
