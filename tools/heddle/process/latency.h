// Latency statistics and the machine they were measured on.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"

namespace heddle::tool {

// {"min", "median", "p90", "p99" (null under 100 runs), "runs"}; all null without runs.
Json latency_json(std::vector<double> ns);
// Returns the median of at least one run, as in latency_json.
double median_ns(std::vector<double> ns);
std::string latency_text(std::vector<double> ns);
// The instruction set that the CPU plugin chose its kernels for: "avx512", "avx2" or "sse"; null: there is no such plugin.
Json instruction_set(const Runtime& runtime);

}  // namespace heddle::tool
