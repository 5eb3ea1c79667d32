// The sentence of a rank that goes no further: which rank is lost, at which collective, and who had come. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shared/ranks/rank_connections.h"

namespace heddle::cpu {

// The reason in the report of a rank that has waited too long.
inline constexpr const char* waited_too_long = "it has waited too long";

// The reason in the report of a rank that has done all that it was asked for.
inline constexpr const char* session_closed = "its session has closed";

// All that a rank knows when a collective has failed.
struct LostRanks {
  int32_t rank = 0;
  std::string communicator;                                     // for messages
  std::chrono::nanoseconds timeout{};                           // of the communicator
  operators::RankReport mine;                                   // what it has reported
  std::vector<int32_t> broken;                                  // the ranks whose connections broke
  std::vector<std::optional<operators::RankReport>> reports{};  // by rank; null: the rank has not answered
  std::string unread;                                           // why some reports can not be read; empty: all can
};

// Returns a sentence, as `rank 1 does not answer, missing in "sum" (operation 3) of communicator "world" after 2000 ms; ranks 0 and 2 had
// come`.
std::string text_of(const LostRanks& lost);

}  // namespace heddle::cpu
