// The number of threads that this process can really run at once, by its affinity mask and its control groups.
#pragma once

#include <vector>

namespace heddle {

// Returns the processors that the calling thread may run on, ascending. Empty if the system does not report them.
std::vector<int> allowed_processors();

// Returns the number of allowed processors or the quota (rounded down), whichever is less; at least 1.
int default_concurrency();

}  // namespace heddle
