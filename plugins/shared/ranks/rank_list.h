// Ranks in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::operators {

// Returns "no rank", "rank 4", "ranks 1 and 2" or "ranks 0-6, 9 and 11", for ranks in ascending order.
std::string rank_list(const std::vector<int32_t>& ranks);

}  // namespace heddle::operators
