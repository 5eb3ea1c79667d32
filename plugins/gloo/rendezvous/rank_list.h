// Ranks in messages.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heddle::rendezvous {

// "0-6, 9" for ranks in ascending order.
std::string rank_list(const std::vector<int32_t>& ranks);

}  // namespace heddle::rendezvous
