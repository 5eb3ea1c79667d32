// Counts every malloc, operator new and mmap of the process between start() and stop(), by the calling library; and always the bytes that
// were allocated and not freed. Linked into one test program alone: it replaces the functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle {

class AllocationCount {
 public:
  // Starts counting, on all threads.
  static void start();
  // Stops counting. Returns the calls since start, by the file name of the calling library ("cpu.so", "libdnnl.so.2", ...; the program
  // itself is "program").
  static std::map<std::string, int64_t> stop();
};

// Returns the live bytes of the heap, by the sizes of the blocks that malloc and operator new returned. Mappings do not count.
int64_t live_heap_bytes();

}  // namespace heddle
