#include "session/observation.h"

#include <algorithm>
#include <tuple>

#include "base/threads/clock.h"
#include "session/step_reader.h"

namespace heddle {

namespace {

// Returns how many ranges of tiles a profile keeps: each thread takes some, ever smaller ones, of each step of several tiles.
size_t ranges_of(const Plan& plan) {
  constexpr int64_t of_thread = 16, most = int64_t{1} << 20;
  int64_t ranges = 0;
  for (const PlanStep& step : plan.steps)
    if (step.tiles > 1) ranges += std::min(step.tiles, of_thread * plan.max_threads);
  return static_cast<size_t>(std::min(ranges, most));
}

}  // namespace

void Observation::ask(const RunOptions& options, const Execution& execution, RunSettings& settings) {
  if (profile_) {
    spans_.assign(execution.plan().steps.size(), {});
    tile_spans_.resize(ranges_of(execution.plan()));
    tiles_.spans = tile_spans_;
    tiles_.offered.store(0, std::memory_order_relaxed);
    profile_->steps.reserve(spans_.size());  // filled when the run is over, when it is too late for an error
    profile_->tiles.reserve(tile_spans_.size());
    settings.profile = spans_.data();
    settings.tiles = &tiles_;
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
  const size_t offered = tiles_.offered.load(std::memory_order_relaxed), kept = std::min(offered, tiles_.spans.size());
  profile_->tiles.resize(kept);
  profile_->tiles_left_out = static_cast<int64_t>(offered - kept);
  for (size_t i = 0; i < kept; ++i) {
    const RangeTime& span = tiles_.spans[i];
    profile_->tiles[i] = {span.step, span.worker, span.first, span.tiles, since(span.begin), since(span.end)};
  }
  std::sort(profile_->tiles.begin(), profile_->tiles.end(), [](const TileTime& a, const TileTime& b) {
    return std::tie(a.begin_ns, a.step, a.first_tile) < std::tie(b.begin_ns, b.step, b.first_tile);
  });
}

}  // namespace heddle
