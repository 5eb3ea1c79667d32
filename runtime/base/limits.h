// What untrusted files may ask for. Every limit can be raised by the embedding program or the command line; exceeding one is
// Code::limit_exceeded (exit 4) with the limit's name, the value and how to raise it.
#pragma once

#include <cstdint>

namespace heddle {

struct Limits {
  int64_t file_bytes = int64_t{2} << 30;  // of a .heddle or .json file (FlatBuffers end at 2 GiB)
  int64_t weight_file_bytes = int64_t{1} << 40;
  int64_t nodes = 4'000'000;  // over all subnets
  int64_t subnet_depth = 16;
  int64_t name_bytes = 4096;
  int64_t attribute_elements = 16'777'216;    // of one list attribute
  int64_t tensor_bytes = int64_t{1} << 40;    // of one value
  int64_t plan_bytes = int64_t{1} << 40;      // planned peak per device
  int64_t evaluated_elements = 4096;          // of a value whose content inference follows
  int64_t folded_bytes = int64_t{256} << 20;  // of a constant that folding may create
  int64_t loop_trips = 1'000'000'000;
};

}  // namespace heddle
