// Connects the pairs of a context of Gloo's with those of the other ranks, all at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "shared/ranks/rank_connections.h"

namespace gloo::transport {
class Context;
}

namespace heddle::ranks {

using operators::RankClock;
using plugin::Status;

// Returns the time until `until` as Gloo's waits take it; 0 once it has passed.
std::chrono::milliseconds left_until(RankClock::time_point until);

// `attempt`: what all ranks that connect have in common, and no others. `addresses`: by rank, those at which its pairs listen, one after
// the other and of one length. Throws std::bad_alloc. Errors: device (a rank can not be reached, or `until` is over), cancelled.
Status connect_pairs(gloo::transport::Context& context, const std::string& attempt, const std::vector<std::string>& addresses,
                     RankClock::time_point until, const std::function<bool()>& cancelled);

}  // namespace heddle::ranks
