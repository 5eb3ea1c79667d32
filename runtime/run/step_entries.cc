#include "run/step_entries.h"

#include <algorithm>

#include "run/late/late_step.h"
#include "run/pending_steps.h"
#include "run/step_contexts.h"
#include "run/subnets/subnets.h"
#include "run/tile_ranges.h"
#include "schedule/step_call.h"

namespace heddle {
namespace {

// ---------------------------------------------------------------- the functions

heddle_status run_nothing(const heddle_run_context*, int64_t, int64_t) {
  return HEDDLE_OK;
}

// Checks the extents before it calls a kernel that reads them itself.
heddle_status run_with_extents(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  if (const Status bad = check_input_extents(*context); !bad.ok()) {
    c.services().failures.note(c.step, HEDDLE_ERROR_INVALID, bad.diagnostic().message);
    return HEDDLE_ERROR_INVALID;
  }
  return c.planned().kernel->kernel->run(context, begin, end);
}

template <bool reads_extents>
heddle_run_function kernel_run(const StepContext& c) {
  if constexpr (reads_extents)
    return run_with_extents;
  else
    return c.planned().kernel->kernel->run;
}

template <bool reads_extents>
heddle_status run_in_ranges(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  const PlanStep& step = c.planned();
  return run_tiles(c.services().scope, c.step, kernel_run<reads_extents>(c), context, {begin, end},
                   step.cost_ns / static_cast<double>(step.tiles));
}

// Starts an asynchronous step.
template <bool reads_extents>
heddle_status start(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  PendingSteps& pending = c.services().pending;
  const heddle_run_function run = kernel_run<reads_extents>(c);
  pending.starting(c.step);
  try {
    return pending.started(c.step, run(context, begin, end));
  } catch (...) {
    return pending.started(c.step, say_threw(context));
  }
}

// Runs a kernel that may suspend, or runs it again.
template <bool reads_extents>
heddle_status resume(const heddle_run_context* context, int64_t, int64_t) {
  const auto kernel = [](const heddle_run_context* own, bool resumed) {
    const StepContext& c = StepContext::of(*own);
    c.abi().resumed = resumed ? 1 : 0;
    return call_run({kernel_run<reads_extents>(c), own, 1}, 0, 1);
  };
  const StepContext& c = StepContext::of(*context);
  return c.services().subnets.call(c.step, kernel, context);
}

// The scheduler resolves a late step by a call for no tiles, unless one call is for all tiles.
heddle_status run_late(const heddle_run_context* context, int64_t begin, int64_t end) {
  const StepContext& c = StepContext::of(*context);
  LateStep& late = *c.all->late(c.step);
  return begin < end ? late.run(begin, end) : late.resolve();
}

heddle_status start_late(const heddle_run_context* context, int64_t, int64_t) {
  const StepContext& c = StepContext::of(*context);
  const Status status = c.all->late(c.step)->start(c.services().pending);
  if (status.ok()) return HEDDLE_OK;
  c.services().failures.note_cause(c.step, status);
  return status_of(status.code());
}

heddle_status resume_late(const heddle_run_context* context, int64_t, int64_t) {
  const auto kernel = [](const heddle_run_context* own, bool resumed) {
    const StepContext& c = StepContext::of(*own);
    return c.all->late(c.step)->run_whole(resumed);
  };
  const StepContext& c = StepContext::of(*context);
  return c.services().subnets.call(c.step, kernel, context);
}

// Called when the device has completed the step before a fence; `user` is the context of the fence. After it the run may be over and the
// execution destroyed.
void fence_passed(void* user, heddle_status failed) {
  const StepContext& fence = *static_cast<StepContext*>(user);
  fence.services().scheduler.complete(fence.step, failed);
}

// Enqueues the steps of a group. Where that fails, no fence of theirs is called any more.
heddle_status launch_group(const StepContext& c) {
  Scheduler& scheduler = c.services().scheduler;
  DeviceRun& devices = *c.services().devices;
  const bool observed = devices.streams().observed();
  const std::vector<uint32_t>& group = c.planned().on_device->group;
  const auto fence_of = [&](uint32_t member) { return observed ? -1 : c.services().plan.steps[member].on_device->fence; };
  for (const uint32_t member : group)
    if (const int32_t fence = fence_of(member); fence >= 0) {
      scheduler.expect(static_cast<uint32_t>(fence));
      devices.answers().expect_fence(member, {fence_passed, &(*c.all)[static_cast<uint32_t>(fence)]});
    }
  heddle_status status = HEDDLE_OK;
  try {
    status = devices.worker().enqueue_group(c.step, c.all->parts_of(c.step), !observed);
  } catch (...) {  // fences are expected: nothing may be thrown before unexpect()
    status = say_threw(&c.abi());
  }
  for (const uint32_t member : group)
    if (status != HEDDLE_OK && fence_of(member) >= 0 && devices.answers().withdraw(member)) scheduler.unexpect();
  return status;
}

// Enqueues a step on a device.
template <bool is_late>
heddle_status enqueue(const heddle_run_context* context, int64_t, int64_t) {
  const StepContext& c = StepContext::of(*context);
  Scheduler& scheduler = c.services().scheduler;
  DeviceRun& devices = *c.services().devices;
  if (c.planned().on_device->launched_by >= 0) return devices.worker().take_place(c.step, context);
  if (!c.planned().on_device->group.empty()) return launch_group(c);
  const int32_t fence = c.planned().on_device->fence;
  const auto enqueue = [&](bool fenced) {
    if constexpr (is_late)
      return c.all->late(c.step)->enqueue(fenced);
    else
      return devices.worker().enqueue(c.step, context, devices.worker().planned_kernel(c.step), fenced);
  };
  // A step of an observed run waits for its own work.
  if (fence < 0 || devices.streams().observed()) return enqueue(false);
  const auto awaited = static_cast<uint32_t>(fence);
  scheduler.expect(awaited);
  devices.answers().expect_fence(c.step, {fence_passed, &(*c.all)[awaited]});
  heddle_status status = HEDDLE_OK;
  try {
    status = enqueue(true);
  } catch (...) {  // the fence is expected: nothing may be thrown before unexpect()
    status = say_threw(context);
  }
  // A fence that was completed with a failure meanwhile must not be unexpected as well.
  if (status != HEDDLE_OK && devices.answers().withdraw(c.step)) scheduler.unexpect();
  return status;
}

// ---------------------------------------------------------------- the table

constexpr uint8_t bit(auto value) {
  return static_cast<uint8_t>(1u << static_cast<unsigned>(value));
}
constexpr uint8_t host = bit(StepSite::host), kernel = bit(StepSite::kernel), copy = bit(StepSite::copy), fence = bit(StepSite::fence);
constexpr uint8_t device = kernel | copy | fence;
constexpr uint8_t no = bit(false), yes = bit(true), any = 0xff;
constexpr uint8_t none = bit(StepWork::none), some = bit(StepWork::some), ranges = bit(StepWork::ranges);

using enum StepEntry::Tiles;

// One call enqueues all of a step on a device, whatever its tiles; a kernel that reads extents does so on the stream, and nothing is
// checked before. A late step finds its tiles during the run.
// clang-format off
constexpr StepEntry entries[] = {
    //  site    late  extents  async  suspends  work
    {{  host,   no,   no,      no,    no,       some  }, planned, nullptr},
    {{  host,   no,   no,      no,    no,       ranges}, planned, run_in_ranges<false>},
    {{  host,   no,   yes,     no,    no,       some  }, planned, run_with_extents},
    {{  host,   no,   yes,     no,    no,       ranges}, planned, run_in_ranges<true>},
    {{  host,   no,   no,      yes,   no,       some  }, one,     start<false>},
    {{  host,   no,   yes,     yes,   no,       some  }, one,     start<true>},
    {{  host,   no,   no,      no,    yes,      some  }, one,     resume<false>},
    {{  host,   no,   yes,     no,    yes,      some  }, one,     resume<true>},
    {{  host,   no,   any,     no,    any,      none  }, one,     run_nothing},
    {{  host,   no,   any,     yes,   no,       none  }, one,     run_nothing},  // nothing is started or awaited
    {{  host,   yes,  no,      no,    no,       some  }, late,    run_late},
    {{  host,   yes,  no,      yes,   no,       some  }, one,     start_late},
    {{  host,   yes,  no,      no,    yes,      some  }, one,     resume_late},
    {{  kernel, no,   any,     no,    no,       any   }, one,     enqueue<false>},
    {{  kernel, yes,  no,      no,    no,       some  }, one,     enqueue<true>},
    {{  copy,   no,   any,     no,    no,       some  }, one,     enqueue<false>},
    {{  copy,   yes,  no,      no,    no,       some  }, one,     enqueue<true>},
    {{  fence,  no,   no,      no,    no,       some  }, one,     run_nothing},  // called in observed runs alone: elsewhere the device completes it
};

constexpr ImpossibleStep impossible[] = {
    //  site          late  extents  async  suspends  work
    {{  any,          any,  any,     yes,   yes,      any           },
     "plugin/check_tables.cc", "a kernel that is asynchronous and resumes is refused"},
    {{  any,          yes,  yes,     any,   any,      any           },
     "compile/select.cc", "a step whose kernel reads extents is planned at the bounds, and not late"},
    {{  any,          yes,  any,     any,   any,      none | ranges },
     "compile/prepare.cc", "the kernel of a late step is not prepared there, and its plan has one tile"},
    {{  host,         any,  any,     yes,   any,      ranges        },
     "plugin/kernel_instance.cc", "an asynchronous step has at most one tile"},
    {{  host,         any,  any,     any,   yes,      ranges        },
     "plugin/kernel_instance.cc", "a step that resumes has at most one tile"},
    {{  kernel,       any,  any,     yes,   any,      any           },
     "plugin/check_tables.cc", "asynchronous kernels are for cpu, and plugin/registry.cc finds none to launch on a device"},
    {{  device,       any,  any,     any,   yes,      any           },
     "compile/select.cc", "Draft::suspends() is true for steps on the host alone"},
    {{  copy | fence, any,  any,     yes,   any,      any           },
     "compile/plan_devices.cc", "the stand-in kernels of copies and fences have no flags"},
    {{  copy | fence, any,  any,     any,   any,      none | ranges },
     "compile/plan_devices.cc", "the stand-in kernels of copies and fences have one tile"},
    {{  fence,        yes,  any,     any,   any,      any           },
     "compile/fences.cc", "a fence has no operands"},
    {{  fence,        any,  yes,     any,   any,      any           },
     "compile/fences.cc", "a fence has no operands"},
};
// clang-format on

// Whether each combination of traits is in one row, or else in the list of impossible ones.
constexpr bool each_is_listed_once() {
  for (unsigned n = 0; n < 4 * 3 * 16; ++n) {
    const StepTraits traits = {static_cast<StepSite>(n % 4),
                               static_cast<StepWork>(n / 4 % 3),
                               (n / 12 & 1) != 0,
                               (n / 12 & 2) != 0,
                               (n / 12 & 4) != 0,
                               (n / 12 & 8) != 0};
    int rows = 0;
    bool excluded = false;
    for (const StepEntry& entry : entries) rows += entry.of.matches(traits) ? 1 : 0;
    for (const ImpossibleStep& one : impossible) excluded = excluded || one.of.matches(traits);
    if (rows != (excluded ? 0 : 1)) return false;
  }
  return true;
}
static_assert(each_is_listed_once());

}  // namespace

StepTraits traits_of(const PlanStep& step) {
  constexpr double long_step_ns = 10e6;
  StepTraits traits;
  if (step.on_device)
    traits.site = step.on_device->kind == DeviceWork::Kind::fence                                                        ? StepSite::fence
                  : step.on_device->kind == DeviceWork::Kind::kernel || step.on_device->kind == DeviceWork::Kind::launch ? StepSite::kernel
                                                                                                                         : StepSite::copy;
  const bool is_long = step.tiles > 1 && (step.cost_ns <= 0 || step.cost_ns >= long_step_ns);
  traits.work = step.tiles == 0 ? StepWork::none : is_long ? StepWork::ranges : StepWork::some;
  traits.late = step.late;
  traits.reads_extents = step.reads_extents;
  traits.asynchronous = step.asynchronous();
  traits.suspends = step.suspends;
  return traits;
}

const StepEntry* find_entry(const StepTraits& traits) {
  const auto found = std::find_if(std::begin(entries), std::end(entries), [&](const StepEntry& entry) { return entry.of.matches(traits); });
  return found == std::end(entries) ? nullptr : found;
}

std::span<const StepEntry> step_entries() {
  return entries;
}

std::span<const ImpossibleStep> impossible_steps() {
  return impossible;
}

}  // namespace heddle
