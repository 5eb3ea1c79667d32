#include "commands/run/profiled_runs.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "process/latency.h"

namespace heddle::tool {
namespace {

// Runs that are kept, and step times of all of them together.
constexpr int64_t max_runs = 101, max_step_times = int64_t{1} << 22;

int64_t spacing(int64_t runs, size_t steps) {
  const int64_t kept = std::clamp<int64_t>(max_step_times / std::max<int64_t>(1, static_cast<int64_t>(steps)), 1, max_runs);
  return (runs + kept - 1) / kept;
}

}  // namespace

ProfiledRuns::ProfiledRuns(int64_t runs, size_t steps) : runs_(runs), every_(std::max<int64_t>(1, spacing(runs, steps))) {}

void ProfiledRuns::ended(double ns) {
  ns_.push_back(ns);
  const auto number = static_cast<int64_t>(ns_.size());
  if ((number - 1) % every_ == 0) kept_.push_back({current_, ns, number, runs_});
}

ProfiledRun ProfiledRuns::median() && {
  const double median = median_ns(std::move(ns_));
  return std::move(*std::min_element(kept_.begin(), kept_.end(), [&](const ProfiledRun& a, const ProfiledRun& b) {
    return std::abs(a.ns - median) < std::abs(b.ns - median);
  }));
}

}  // namespace heddle::tool
