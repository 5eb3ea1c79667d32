#include "session/observation.h"

#include <algorithm>

#include "base/threads/clock.h"
#include "session/step_reader.h"

namespace heddle {

void Observation::ask(const RunOptions& options, const Execution& execution, RunSettings& settings) {
  if (profile_) {
    spans_.assign(execution.plan().steps.size(), {});
    profile_->steps.reserve(spans_.size());  // filled when the run is over, when it is too late for an error
    settings.profile = spans_.data();
  }
  if (options.observer && *options.observer) {
    observer_ = [reader = StepReader(execution), observer = options.observer](uint32_t step) mutable {
      return reader.show(*observer, step);
    };
    settings.observer = &observer_;
  }
}

// Times are in nanoseconds from the first step's begin. A step in tiles that a failure left unfinished has no end, and is shown to end
// where it began.
void Observation::end() {
  if (!profile_) return;
  uint64_t first = UINT64_MAX;
  for (const StepSpan& span : spans_)
    if (span.begin != 0) first = std::min(first, span.begin);
  const auto since = [&](uint64_t at) { return static_cast<int64_t>(ticks_to_ns(at - first)); };
  profile_->steps.resize(spans_.size());
  for (size_t i = 0; i < spans_.size(); ++i) {
    const StepSpan& span = spans_[i];
    profile_->steps[i] = span.begin == 0 ? StepTime() : StepTime{since(span.begin), since(std::max(span.begin, span.end)), span.workers};
  }
}

}  // namespace heddle
