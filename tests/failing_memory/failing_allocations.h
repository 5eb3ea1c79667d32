// Fails one allocation of the process, the n-th from now on: operator new throws std::bad_alloc, on whatever thread. Only allocations of
// Heddle and of its plugins count. Those of oneTBB, oneDNN and Gloo succeed; the caller's address tells them apart. Linked into one test
// program alone: it replaces operator new. Works under the sanitizers, whose malloc it calls.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle::testing_memory {

// At most one may exist at a time.
class FailingAllocation {
 public:
  // The `n`-th allocation from here on fails, n >= 1; with 0 none does, they are only counted.
  explicit FailingAllocation(int64_t n);
  // Calls stop().
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
  // Ends the watch: no later allocation fails. Returns whether the n-th has failed.
  bool stop();
  // Allocations since the watch began.
  int64_t count() const;
};

// While an object of this class lives, allocations of its thread are not counted: for the test's own code inside a watch.
class Unwatched {
 public:
  Unwatched();
  ~Unwatched();
  Unwatched(const Unwatched&) = delete;
  Unwatched& operator=(const Unwatched&) = delete;
};

// Returns the allocations during all watches so far that were made inside of other libraries, by the library's file name.
std::map<std::string, int64_t> foreign_allocations();

// Records the address ranges of the libraries that are loaded now. Call it once all of them are loaded.
void note_libraries();

}  // namespace heddle::testing_memory
