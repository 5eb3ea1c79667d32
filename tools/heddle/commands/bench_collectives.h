// heddle bench --collectives: how long collectives take, by size and by number of participants.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/command.h"

namespace heddle::tool {

struct CollectivesBench {
  std::vector<int> members = {2, 4};
  std::vector<std::string> sizes = {"4K", "1M", "16M"};  // of each participant's tensor, in bytes
  int repeat = 20, warmup = 5;
  std::string device;  // a kind of devices, "sim"; empty or "cpu": ranks that are threads of this process
};

// Measures each operator with each number of participants and each size. Returns an array for the report. Errors: invalid_argument, and
// those of runs.
Result<Json> bench_collectives(const CollectivesBench& bench, Report& report);

}  // namespace heddle::tool
