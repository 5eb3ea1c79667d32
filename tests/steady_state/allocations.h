// Counts every malloc, operator new and mmap of the process while it is told to, by the library that calls. Linked into one test program
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

}  // namespace heddle
