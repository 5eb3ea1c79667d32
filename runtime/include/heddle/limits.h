// Limits on what files and nets, most of them from unknown authors, may request. Exceeding a limit is Code::limit_exceeded (exit 4) with
// the limit's name, its value and how to raise it: SessionOptions::limits, or --limit NAME=VALUE of the command line.
//
// A plain value, copied where it is needed. The defaults for memory depend on the machine.
#pragma once

#include <cstdint>

#include "heddle/export.h"

namespace heddle {

// Returns the number of bytes that this process may use: the minimum of the memory limits of its control groups (version 2: memory.max of
// its group and of the enclosing ones; version 1: memory.limit_in_bytes) and of the machine's memory. Read once, on the first call.
HEDDLE_API int64_t machine_memory_bytes() noexcept;

struct Limits {
  int64_t file_bytes = int64_t{2} << 30;          // size of a .heddle or .json file (FlatBuffers end at 2 GiB)
  int64_t weight_file_bytes = int64_t{1} << 40;   // size of a weights file, which is mapped and takes no memory by its length
  int64_t nodes = 4'000'000;                      // operators in all subnets together
  int64_t subnet_depth = 16;                      // nets within nets
  int64_t name_bytes = 4096;                      // length of a name or a short text
  int64_t attribute_elements = 16'777'216;        // length of one list attribute
  int64_t tensor_bytes = machine_memory_bytes();  // size of one value
  int64_t plan_bytes = machine_memory_bytes();    // planned peak per device; SessionOptions::memory_limit may be lower
  int64_t evaluated_elements = 4096;  // size of a value whose content inference computes; the content of larger ones counts as unknown
  int64_t folded_bytes = int64_t{256} << 20;  // size of a constant that folding may create; larger ones are computed in each run
  int64_t loop_trips = 1'000'000'000;         // runs of subnets in one run
  // Operations of one run, as the operators declare them; subnets count once. A core does about 10^11 in a second, so this is a day of one
  // core.
  int64_t operations = 10'000'000'000'000'000;
};

// Fixed bounds, which no option raises. An option beyond its bound is Code::invalid_argument, a net beyond it Code::limit_exceeded.
inline constexpr int max_threads = 64;   // of a run, however many an executor has
inline constexpr int max_streams = 64;   // of each device
inline constexpr int max_devices = 254;  // of a net, in addition to the host

}  // namespace heddle
