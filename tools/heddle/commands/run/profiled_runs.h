// The run that --trace and --report show: of several the median one, which is no outlier.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/observe.h"

namespace heddle::tool {

// One run of `runs` with the times of its steps; `number` counts from 1.
struct ProfiledRun {
  Profile profile;
  double ns = 0;
  int64_t number = 0, runs = 0;
};

// Keeps the times of some of the runs, evenly spread over all of them, until it is known which one is the median.
class ProfiledRuns {
 public:
  ProfiledRuns(int64_t runs, size_t steps);
  // The profile that the next run writes to.
  Profile* profile() { return &current_; }
  // Records that the run took `ns`.
  void ended(double ns);
  // Returns the kept run whose time is closest to the median of all; of at most 101 runs, the median. REQUIRES: at least one has ended.
  ProfiledRun median() &&;

 private:
  const int64_t runs_, every_;
  Profile current_;
  std::vector<double> ns_;
  std::vector<ProfiledRun> kept_;
};

}  // namespace heddle::tool
