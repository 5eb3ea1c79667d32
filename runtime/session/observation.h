// Observation: the output of a run beside its results, as requested by RunOptions: the times of its steps, and calls of an observer.
#pragma once

#include <functional>
#include <vector>

#include "heddle/session.h"
#include "run/execution.h"

namespace heddle {

// For one run at a time, of any execution. Must outlive the run whose settings point into it.
class Observation {
 public:
  // Sets in `settings` what `options` request of a run of `execution`. Allocates only if they request something.
  void begin(const RunOptions& options, const Execution& execution, RunSettings& settings) {
    profile_ = options.profile;
    if (profile_ || options.observer) [[unlikely]]
      ask(options, execution, settings);
  }
  // Fills the caller's profile. Call it after the run, however it ended, and also if it never began.
  void end();

 private:
  void ask(const RunOptions& options, const Execution& execution, RunSettings& settings);

  Profile* profile_ = nullptr;
  std::vector<StepSpan> spans_;
  std::vector<RangeTime> tile_spans_;
  RangeTimes tiles_;
  std::function<Status(uint32_t)> observer_;
};

}  // namespace heddle
