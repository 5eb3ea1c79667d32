// The run that --trace and --report show: of several the median one, which is no outlier.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/observe.h"

namespace heddle::tool {

// How long a step took in several runs; all 0 if it ran in none.
struct StepSpread {
  int64_t min_ns = 0, median_ns = 0, max_ns = 0;
};

// One run of `runs` with the times of its steps; `number` counts from 1.
struct ProfiledRun {
  Profile profile;
  double ns = 0;
  int64_t number = 0, runs = 0;
  std::vector<StepSpread> spread;  // of each step: the minimum and maximum of all runs, and the median of those that were kept
};

// Keeps the times of some of the runs, evenly spread over all of them, until it is known which one is the median.
class ProfiledRuns {
 public:
  ProfiledRuns(int64_t runs, size_t steps);
  // The profile that the next run writes to.
  Profile* profile() { return &current_; }
  // Records that the run took `ns`.
  void ended(double ns);
  // Returns the kept run whose time is closest to the median of all, of at most 101 runs the median, with the spread of its steps.
  // REQUIRES: at least one has ended.
  ProfiledRun median() &&;

 private:
  const int64_t runs_, every_;
  Profile current_;
  std::vector<double> ns_;
  std::vector<ProfiledRun> kept_;
  std::vector<StepSpread> spread_;
};

}  // namespace heddle::tool
