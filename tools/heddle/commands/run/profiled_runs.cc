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
  spread_.resize(current_.steps.size());
  for (size_t i = 0; i < spread_.size(); ++i) {
    if (!current_.steps[i].ran()) continue;
    const int64_t step_ns = current_.steps[i].end_ns - current_.steps[i].begin_ns;
    StepSpread& spread = spread_[i];
    spread.min_ns = spread.max_ns == 0 && spread.min_ns == 0 ? step_ns : std::min(spread.min_ns, step_ns);
    spread.max_ns = std::max(spread.max_ns, step_ns);
  }
  const auto number = static_cast<int64_t>(ns_.size());
  if ((number - 1) % every_ == 0) kept_.push_back({current_, ns, number, runs_, {}});
}

ProfiledRun ProfiledRuns::median() && {
  const double median = median_ns(std::move(ns_));
  std::vector<int64_t> of_step;
  for (size_t i = 0; i < spread_.size(); ++i) {
    of_step.clear();
    for (const ProfiledRun& run : kept_)
      if (run.profile.steps[i].ran()) of_step.push_back(run.profile.steps[i].end_ns - run.profile.steps[i].begin_ns);
    if (of_step.empty()) continue;
    std::nth_element(of_step.begin(), of_step.begin() + static_cast<std::ptrdiff_t>(of_step.size() / 2), of_step.end());
    spread_[i].median_ns = of_step[of_step.size() / 2];
  }
  ProfiledRun shown = std::move(*std::min_element(kept_.begin(), kept_.end(), [&](const ProfiledRun& a, const ProfiledRun& b) {
    return std::abs(a.ns - median) < std::abs(b.ns - median);
  }));
  shown.spread = std::move(spread_);
  return shown;
}

}  // namespace heddle::tool
