// The table of how the scheduler calls a step, by the traits of the step: the function, and the tiles that it is given.
//
// A row is chosen when a context is made (StepContexts); nothing is looked up during a run. The function is the kernel's own where nothing
// has to be done before or after it.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "compile/plan.h"
#include "heddle/abi.h"

namespace heddle {

// Where a step works: on the host, or on a stream that a kernel or a copy is enqueued on. A fence is done when its stream has completed the
// step before it.
enum class StepSite : uint8_t { host, kernel, copy, fence };
// How much there is to do, as far as it is planned.
enum class StepWork : uint8_t {
  none,    // no tiles
  some,    // one tile, or several that together cost less than 10 ms
  ranges,  // several tiles that cost more, or an unknown amount: they are run in ranges, so that a long step can stop in between
};

struct StepTraits {
  StepSite site = StepSite::host;
  StepWork work = StepWork::some;
  bool late = false;
  bool reads_extents = false;
  bool asynchronous = false;
  bool suspends = false;
};
StepTraits traits_of(const PlanStep& step);

// For each trait, the set of its values that a row is for: bit v stands for value v.
struct StepPattern {
  uint8_t site = 0, late = 0, reads_extents = 0, asynchronous = 0, suspends = 0, work = 0;
  constexpr bool matches(const StepTraits& traits) const {
    const auto has = [](uint8_t values, auto value) { return (values >> static_cast<unsigned>(value) & 1u) != 0; };
    return has(site, traits.site) && has(late, traits.late) && has(reads_extents, traits.reads_extents) &&
           has(asynchronous, traits.asynchronous) && has(suspends, traits.suspends) && has(work, traits.work);
  }
};

struct StepEntry {
  enum class Tiles : uint8_t {
    one,      // the function does all of the step
    planned,  // PlanStep::tiles
    late,     // LateStep::tiles()
  };
  StepPattern of;
  Tiles tiles = Tiles::one;
  heddle_run_function run = nullptr;  // null: the kernel's own
};

// Returns the row for a step; null: no step has these traits, see impossible_steps().
const StepEntry* find_entry(const StepTraits& traits);

// The rows, which do not overlap, and the traits that no step has together. Each combination is in one of the two lists.
struct ImpossibleStep {
  StepPattern of;
  std::string_view file;  // the file in runtime/ that refuses or excludes it
  std::string_view why;
};
std::span<const StepEntry> step_entries();
std::span<const ImpossibleStep> impossible_steps();

}  // namespace heddle
