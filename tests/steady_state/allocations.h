// Counts every malloc, operator new and mmap of the process while it is told to, by the library that calls; and always the bytes that were
// allocated and not freed. Linked into one test program
// alone: it replaces the functions.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace heddle {

class AllocationCount {
 public:
  // Counts from here on, on all threads.
  static void start();
  // Calls since start, by the file name of the calling library ("cpu.so", "libdnnl.so.2", ...; the program itself is "program").
  static std::map<std::string, int64_t> stop();
};

// Of the heap, as large as the blocks are that malloc and operator new gave. Mappings do not count.
int64_t live_heap_bytes();

}  // namespace heddle
