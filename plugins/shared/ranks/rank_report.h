// The report of a rank: where it was when it went no further, and why. It tells the others once.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::operators {

struct RankReport {
  uint64_t number = 0;           // of the collective that it had come to: 1 is the first over its connections
  std::string collective;        // its name; "": the rank was in none, and done with that
  std::string reason;            // why it goes no further
  std::vector<int32_t> missing;  // the ranks that it waited for
  uint64_t exchanges = 0;        // how many exchanges of bytes it has completed
  std::string exchanged;         // the bytes of all ranks in the last one
  bool operator==(const RankReport&) const = default;
};

}  // namespace heddle::operators
