// The suite's coverage of each operator; the program prints it when it ends.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "conformance/reference.h"

namespace heddle::conformance {

struct Covered {
  std::set<std::string> dtypes;  // of input 0, or of output 0
  int calls[kind_count] = {}, epilogues[kind_count] = {}, runs = 0, layouts = 0, in_place = 0;
  int64_t max_tiles = 0;     // the maximum over its calls
  bool one_element = false;  // some call's first input and output have one
  // same_width: some call's first input and output have several elements of the same width; same_size: and as many of them.
  bool same_width = false, same_size = false;
};

// The operators' coverage, by name.
std::map<std::string, Covered>& covered();

}  // namespace heddle::conformance
