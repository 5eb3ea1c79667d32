// Limits on what files and nets, most of them from unknown authors, may request. Exceeding a limit is the error Code::limit_exceeded (exit
// status 4 of the command line). The message gives the name of the limit, its value and how to raise it: SessionOptions::limits, or --limit
// NAME=VALUE of the command line.
//
// Limits is a plain value, which is copied where it is needed. The defaults of memory limits depend on the machine.
#pragma once

#include <cstdint>

#include "heddle/export.h"

namespace heddle {

// Returns the number of bytes that this process may use: the minimum of the machine's memory and of the memory limits of the control groups
// of this process (version 2: memory.max of its group and of all enclosing groups; version 1: memory.limit_in_bytes). Read once, on the
// first call.
HEDDLE_API int64_t machine_memory_bytes() noexcept;

struct Limits {
  int64_t file_bytes = int64_t{2} << 30;          // size of a .heddle or .json file (FlatBuffers end at 2 GiB)
  int64_t weight_file_bytes = int64_t{1} << 40;   // size of a weights file; larger than memory, because the file is mapped and not read
  int64_t nodes = 4'000'000;                      // operators of all nets of a file together, including their subnets
  int64_t subnet_depth = 16;                      // nets within nets
  int64_t name_bytes = 4096;                      // length of a name or a short text
  int64_t attribute_elements = 16'777'216;        // length of one list attribute
  int64_t tensor_bytes = machine_memory_bytes();  // size of one value
  int64_t plan_bytes = machine_memory_bytes();    // planned peak per device; SessionOptions::memory_limit may be lower
  int64_t evaluated_elements = 4096;  // size of a value whose content inference computes; the content of larger ones counts as unknown
  int64_t folded_bytes = int64_t{256} << 20;  // size of a constant that folding may create; larger ones are computed in each run
  int64_t loop_trips = 1'000'000'000;         // number of times that subnets are run in one run
  // Operations of one run, as the operators declare them; each subnet counts once, however often it is run. A core does about 10^11
  // operations in a second, so the default is about a day of one core.
  int64_t operations = 10'000'000'000'000'000;
};

// Fixed bounds, which no option raises. An option that exceeds its bound is the error Code::invalid_argument; a net that exceeds a bound is
// the error Code::limit_exceeded.
inline constexpr int max_threads = 64;   // of a run, even if an executor has more
inline constexpr int max_streams = 64;   // of each device
inline constexpr int max_devices = 254;  // of a net, in addition to the host

}  // namespace heddle
