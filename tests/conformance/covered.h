// What the suite has covered of each operator; the program prints it when it ends.
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
  int64_t max_tiles = 0;    // of one of its calls
  bool one_element = false;  // some call's first input and output have one
  // Some call's first output has several elements as wide as the several of the first input; some has as many.
  bool same_width = false, same_size = false;
};

// By name.
std::map<std::string, Covered>& covered();

}  // namespace heddle::conformance
