// Fails one allocation of the process, the n-th from now on: operator new throws std::bad_alloc, on whatever thread. Only allocations of
// Heddle and of its plugins count. Those of oneTBB and oneDNN go on, and are told apart by who called. Linked into one test program alone:
// it replaces operator new. Works under the sanitizers, whose malloc it calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle::testing_memory {

// One watch at a time.
class FailingAllocation {
 public:
  // The `n`-th allocation from here on fails, n >= 1; 0: none does, they are only counted.
  explicit FailingAllocation(int64_t n);
  // As stop().
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  // Whether it has failed by now; nothing fails behind it.
  bool stop();
  // Allocations since the watch began.
  int64_t count() const;
};

// While it lives, what this thread allocates does not count: the test's own code inside of a watch.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

// Allocations during all watches so far that were made inside of other libraries, by the library's file name.
std::map<std::string, int64_t> foreign_allocations();

// Keeps the libraries that are loaded now apart from each other; called once they all are.
void note_libraries();

}  // namespace heddle::testing_memory
