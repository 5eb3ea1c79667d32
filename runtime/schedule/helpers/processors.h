// How many threads this process can really run at once: what its affinity mask and its control groups leave of the machine.
#pragma once

#include <vector>

namespace heddle {

// Processors that the calling thread may run on, ascending. Empty if the system does not say.
std::vector<int> allowed_processors();

// Allowed processors or quota (rounded down), whichever is less; at least 1.
int default_concurrency();

}  // namespace heddle
