// How streams report the work that a run gave them (DeviceRun): fences that they have passed, their completion, and failures.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/text/text.h"
#include "run/device/device_run.h"
#include "schedule/run_control.h"

namespace heddle {

// ---------------------------------------------------------------- fences

void DeviceRun::await(uint32_t step, const Fence& fence) {
  Awaited& awaited = awaited_[step];
  awaited.step = static_cast<uint32_t>(plan_.steps[step].on_device->fence);
  awaited.fence = fence;
  awaited.open.store(true, std::memory_order_release);
}

bool DeviceRun::withdraw(uint32_t step) {
  return awaited_[step].open.exchange(false, std::memory_order_acq_rel);
}

void DeviceRun::fence_reached(void* awaited, heddle_status failed, const char*, size_t) {
  Awaited& told = *static_cast<Awaited*>(awaited);
  told.run->tell(told, failed);
}

// After this the run may be over and this object destroyed.
void DeviceRun::tell(Awaited& awaited, heddle_status failed) {
  if (!awaited.open.exchange(false, std::memory_order_acq_rel)) return;
  const DeviceWork& planned = *plan_.steps[awaited.step].on_device;
  if (failed == HEDDLE_OK) sides_[planned.device - 1u].passed[planned.stream].store(awaited.step + 1, std::memory_order_relaxed);
  awaited.fence.passed(awaited.fence.user, failed);
}

bool DeviceRun::must_look() const {
  return std::any_of(sides_.begin(), sides_.end(), [](const Side& side) { return side.device->has(HEDDLE_DEVICE_DROPS_CALLBACKS); });
}

void DeviceRun::look() {
  forget_entered();  // other devices are called here, and other code was called before
  for (uint32_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    if (!side.device->has(HEDDLE_DEVICE_DROPS_CALLBACKS)) continue;
    for (uint32_t s = 0; s < side.streams.size(); ++s) {
      if (!side.answers[s].worked) continue;
      const heddle_status status = side.device->query(side.streams[s]);
      if (status != HEDDLE_OK && status != HEDDLE_PENDING) tell_fences(d, s, status);
    }
  }
}

// Completes the fences of a stream that has ended without calling back.
void DeviceRun::tell_fences(uint32_t side, uint32_t stream, heddle_status status) {
  for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (work && work->device == side + 1 && work->stream == stream && work->fence >= 0) tell(awaited_[i], status);
  }
}

// ---------------------------------------------------------------- the end of what is in flight

// Takes no lock: a device may call back from inside abort_stream, and the callback may abort again.
void DeviceRun::abort(bool all) {
  ++aborting_;
  if (aborts_ >= (all ? Aborts::of_all : Aborts::any)) {
    aborted_ = true;
    for (Side& side : sides_)
      for (void* const stream : side.streams)
        if (side.device->can_abort()) side.device->abort(stream);
  }
  --aborting_;
}

bool DeviceRun::end_aborts(bool all) {
  aborts_ = all ? Aborts::none : Aborts::of_all;
  while (aborting_ != 0) std::this_thread::yield();
  return aborted_;
}

void DeviceRun::answer(void* user, heddle_status failed, const char*, size_t) {
  Answer& answer = *static_cast<Answer*>(user);
  DeviceRun& run = *answer.run;
  const std::lock_guard lock(run.mutex_);
  if (answer.given) return;
  answer.given = true;
  answer.failed = failed;
  if (run.unanswered_) run.unanswered_->answer();
  run.answered_.notify_all();  // under the lock: after it the run may be destroyed
}

void DeviceRun::ask(Side& side, uint32_t stream) {
  Answer& asked = side.answers[stream];
  if (std::exchange(asked.asked, true)) return;
  asked.given = false;  // nothing else writes it before the callback is enqueued
  heddle_work callback = {};
  callback.callback = answer;
  callback.user = &asked;
  if (enqueue(*side.device, side.streams[stream], callback, UINT64_MAX, nullptr) == HEDDLE_OK) return;
  // A stream that accepts no more work has failed: synchronize reports how.
  const std::lock_guard lock(mutex_);
  asked.given = true;
  asked.failed = HEDDLE_ERROR_INTERNAL;
}

// Queries the streams of devices that may drop callbacks.
void DeviceRun::look_at_answers() {
  for (Side& side : sides_) {
    if (!side.device->has(HEDDLE_DEVICE_DROPS_CALLBACKS)) continue;
    for (Answer& a : side.answers) {
      if (!a.asked || a.given) continue;
      const heddle_status status = side.device->query(a.stream);
      if (status != HEDDLE_PENDING) answer(&a, status, nullptr, 0);
    }
  }
}

template <class Given>
bool DeviceRun::wait_for(double ns, const Given& given) {
  constexpr std::chrono::nanoseconds look_again = std::chrono::milliseconds(2);
  auto left = std::chrono::nanoseconds(static_cast<int64_t>(ns));
  if (!must_look()) {
    std::unique_lock lock(mutex_);
    return answered_.wait_for(lock, left, given);
  }
  for (;;) {
    look_at_answers();
    std::unique_lock lock(mutex_);
    const auto slice = std::min(left, look_again);
    if (answered_.wait_for(lock, slice, given)) return true;
    left -= slice;
    if (left.count() <= 0) return false;
  }
}

// Waits until the stream has completed its work. HEDDLE_PENDING: the run was requested to stop, and the stream did not complete in time.
heddle_status DeviceRun::wait_for_answer(Side& side, uint32_t stream, double answer_ns) {
  constexpr double look_again_ns = 5e6;
  ask(side, stream);
  Answer& asked = side.answers[stream];
  while (!wait_for(look_again_ns, [&] { return asked.given; }))
    if (stops_(user_) && !wait_for(answer_ns, [&] { return asked.given; })) return HEDDLE_PENDING;
  asked.asked = false;
  return asked.failed;
}

// REQUIRES: mutex_ is held.
bool DeviceRun::all_given() {
  return std::all_of(sides_.begin(), sides_.end(), [](const Side& side) {
    return std::all_of(side.answers.begin(), side.answers.end(), [](const Answer& a) { return !a.asked || a.given; });
  });
}

std::vector<DeviceRun::Failure> DeviceRun::drain(double ns) {
  for (Side& side : sides_)
    for (uint32_t s = 0; s < side.streams.size(); ++s)
      if (side.answers[s].worked) ask(side, s);
  if (!wait_for(ns, [&] { return all_given(); }) && ns > 0) {
    for (Side& side : sides_)
      for (uint32_t s = 0; s < side.streams.size(); ++s)
        if (side.device->can_abort() && side.answers[s].asked && !wait_for(0, [&] { return side.answers[s].given; }))
          side.device->abort(side.streams[s]);
    wait_for(answer_after_stop_ns, [&] { return all_given(); });
  }
  std::vector<Failure> failures;
  for (uint32_t d = 0; d < sides_.size(); ++d) {
    Side& side = sides_[d];
    Failure unknown;
    bool known = false;  // then unknown failures of other streams follow from it
    std::vector<uint32_t> suspects;
    for (uint32_t s = 0; s < side.streams.size(); ++s) {
      Answer& asked = side.answers[s];
      if (!asked.asked || !wait_for(0, [&] { return asked.given; })) continue;
      asked.asked = false;
      asked.worked.store(false, std::memory_order_relaxed);
      HostCall call;
      const heddle_status status = side.device->synchronize(side.streams[s], &call);
      if (side.device->has(HEDDLE_DEVICE_DROPS_CALLBACKS)) tell_fences(d, s, status);
      if (status == HEDDLE_OK) continue;
      const uint64_t label = side.device->failed_label(side.streams[s]);
      if (label != UINT64_MAX && (outer_label_ != UINT64_MAX || (label & UINT32_MAX) < plan_.steps.size())) {
        known = true;
        failures.push_back(labelled(label, status, std::move(call.error.text)));
        continue;
      }
      // Aborted streams do not report a cause.
      if (unknown.status == HEDDLE_OK || unknown.status == HEDDLE_ERROR_CANCELLED) unknown = {0, false, status, std::move(call.error.text)};
      const std::vector<uint32_t> behind = steps_behind(side, d + 1, s);
      suspects.insert(suspects.end(), behind.begin(), behind.end());
    }
    if (unknown.status == HEDDLE_OK || known) continue;
    // If no work came after the last successful fences, any step may have failed.
    for (uint32_t i = 0, end = suspects.empty() ? static_cast<uint32_t>(plan_.steps.size()) : 0; i < end; ++i)
      if (const DeviceWork* work = plan_.steps[i].on_device.get(); work && work->device == d + 1 && work->kind != DeviceWork::Kind::fence)
        suspects.push_back(i);
    failures.push_back(blame(std::move(suspects), std::move(unknown)));
  }
  note_unanswered();
  return failures;
}

// Notes streams with a callback that were not synchronised since. Some may have completed by now: the next drain synchronises them.
void DeviceRun::note_unanswered() {
  const std::lock_guard lock(mutex_);
  uint32_t asked = 0, missing = 0;
  for (const Side& side : sides_)
    for (const Answer& answer : side.answers) {
      asked += answer.asked ? 1 : 0;
      missing += answer.asked && !answer.given ? 1 : 0;
    }
  if (asked == 0)
    unanswered_ = nullptr;
  else if (!unanswered_)
    unanswered_ = std::make_shared<Unanswered>(missing, first_unanswered());
}

std::string DeviceRun::first_unanswered() const {
  for (uint32_t d = 0; d < sides_.size(); ++d)
    for (uint32_t s = 0; s < sides_[d].streams.size(); ++s) {
      if (!sides_[d].answers[s].asked) continue;
      const std::vector<uint32_t> steps = steps_behind(sides_[d], d + 1, s);
      return fmt::format("device {} still runs {}", quoted(sides_[d].device->name()),
                         steps.empty() ? "what it was given" : quoted(plan_.steps[steps.front()].name));
    }
  return {};
}

// Returns the failure with the origin of the work of `label`, as far as this plan knows it.
DeviceRun::Failure DeviceRun::labelled(uint64_t label, heddle_status status, std::string text) const {
  const auto step = static_cast<uint32_t>(label), inner = static_cast<uint32_t>(label >> 32) & ((1u << 28) - 1);
  const auto subnet = static_cast<uint32_t>(label >> 60);
  if (outer_label_ != UINT64_MAX) {
    if (step != static_cast<uint32_t>(outer_label_)) return {step, true, status, std::move(text)};
    return {inner < plan_.steps.size() ? inner : 0, false, status, std::move(text)};
  }
  const std::vector<NestedPlan>& nested = plan_.steps[step].nested;
  if (subnet > 0 && subnet <= nested.size() && inner < nested[subnet - 1].plan->steps.size()) {
    const PlanStep& there = nested[subnet - 1].plan->steps[inner];
    text += fmt::format(", in {} ({}) of subnet {}", quoted(there.name), display_name(there.domain, there.type),
                        quoted(nested[subnet - 1].plan->net_name));
  }
  return {step, false, status, std::move(text)};
}

// Returns the steps on the stream after the last fence that succeeded.
std::vector<uint32_t> DeviceRun::steps_behind(const Side& side, uint32_t device, uint32_t stream) const {
  std::vector<uint32_t> steps;
  for (uint32_t i = side.passed[stream].load(std::memory_order_relaxed); i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (work && work->device == device && work->stream == stream && work->kind != DeviceWork::Kind::fence) steps.push_back(i);
  }
  return steps;
}

// If the device does not report the step, any step after the last fence that succeeded may have failed, on any stream that failed.
DeviceRun::Failure DeviceRun::blame(std::vector<uint32_t> suspects, Failure failure) const {
  constexpr size_t max_named = 8;
  std::sort(suspects.begin(), suspects.end());
  std::vector<std::string> names;
  for (const uint32_t step : suspects)
    if (names.size() < max_named) names.push_back(quoted(plan_.steps[step].name));
  if (!suspects.empty()) failure.step = suspects.front();
  if (suspects.size() > max_named) names.push_back(fmt::format("{} more", suspects.size() - max_named));
  if (suspects.size() > 1) failure.text += fmt::format(" (the device does not say which of {} it was)", join(names, ", "));
  return failure;
}

}  // namespace heddle
