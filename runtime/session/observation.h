// Observation: what a run leaves for its caller beside results, as RunOptions ask: the times of its steps, and calls of an observer.
#pragma once

#include <functional>
#include <vector>

#include "heddle/session.h"
#include "run/execution.h"

namespace heddle {

// For one run at a time, of any execution. Outlives the run whose settings point into it.
class Observation {
 public:
  // Lets `settings` ask for what `options` want of a run of `execution`. Allocates only when they want something.
  void begin(const RunOptions& options, const Execution& execution, RunSettings& settings) {
    profile_ = options.profile;
    if (profile_ || options.observer) [[unlikely]]
      ask(options, execution, settings);
  }
  // After the run, however it ended, and when it never began: fills the caller's profile.
  void end();

 private:
  void ask(const RunOptions& options, const Execution& execution, RunSettings& settings);

  Profile* profile_ = nullptr;
  std::vector<StepSpan> spans_;
  std::function<Status(uint32_t)> seen_;
};

}  // namespace heddle
