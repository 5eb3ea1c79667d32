// What files and nets may ask for, most of them from people one does not know. Exceeding a limit is Code::limit_exceeded (exit 4) with the
// limit's name, its value and how to raise it: SessionOptions::limits, or --limit NAME=VALUE of the command line.
//
// A value: copied where it is needed. The defaults for memory follow the machine.
#pragma once

#include <cstdint>

#include "heddle/export.h"

namespace heddle {

// Bytes that this process may have: the least of the memory limits of its control groups (version 2: memory.max of its group and of those
// around it; version 1: memory.limit_in_bytes) and of the machine's memory. Read once, when first asked for.
HEDDLE_API int64_t machine_memory_bytes() noexcept;

struct Limits {
  int64_t file_bytes = int64_t{2} << 30;          // of a .heddle or .json file (FlatBuffers end at 2 GiB)
  int64_t weight_file_bytes = int64_t{1} << 40;   // of a weights file, which is mapped and takes no memory by its length
  int64_t nodes = 4'000'000;                      // operators over all subnets
  int64_t subnet_depth = 16;                      // nets within nets
  int64_t name_bytes = 4096;                      // of a name or a short text
  int64_t attribute_elements = 16'777'216;        // of one list attribute
  int64_t tensor_bytes = machine_memory_bytes();  // of one value
  int64_t plan_bytes = machine_memory_bytes();    // planned peak per device; SessionOptions::memory_limit may be lower
  int64_t evaluated_elements = 4096;              // of a value whose content inference follows; larger ones are taken as unknown
  int64_t folded_bytes = int64_t{256} << 20;      // of a constant that folding may create; larger ones are computed in each run
  int64_t loop_trips = 1'000'000'000;             // runs of subnets in one run
  // Of one run, by what the operators declare; subnets count once. A core does some 10^11 in a second: this is a day of one.
  int64_t operations = 10'000'000'000'000'000;
};

// What nothing raises. An option beyond it is Code::invalid_argument, a net is Code::limit_exceeded.
inline constexpr int max_threads = 64;   // of a run, whatever an executor has
inline constexpr int max_streams = 64;   // of each device
inline constexpr int max_devices = 254;  // of a net, beside the host

}  // namespace heddle
