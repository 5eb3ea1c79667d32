// Draining the streams of a context, and finding out which step has failed.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/text.h"
#include "base/threads/interruption.h"
#include "plugin/host.h"
#include "run/device/stream_answers.h"

namespace heddle {

std::vector<StreamAnswers::Failure> StreamAnswers::drain(double ns, const LeftWork& left) {
  for (Answer& answer : answers_)
    if (answer.state.state() == StreamState::State::worked) ask(answer);
  if (!wait_for_all(ns) && ns > 0) {
    for (const Answer& answer : answers_)
      if (device_of(answer).can_abort() && answer.state.was_asked() && !wait_for_stream(0, answer))
        device_of(answer).abort(stream_of(answer));
    wait_for_all(answer_after_stop_ns);
  }
  std::vector<Failure> failures;
  for (uint32_t d = 1; d <= streams_.device_count(); ++d) drain_device(d, failures);
  note_unanswered(left);
  return failures;
}

// Synchronises the streams of the device that have answered, and appends their failures.
void StreamAnswers::drain_device(uint32_t device, std::vector<Failure>& failures) {
  Device& there = streams_.device(device);
  Failure unknown;
  bool known = false;  // then unknown failures of other streams follow from it
  std::vector<uint32_t> suspects;
  for (Answer& answer : answers_on(device)) {
    if (!answer.state.was_asked() || !wait_for_stream(0, answer)) continue;
    answer.state.on_alone(StreamRules::Event::synchronise);
    HostCall call;
    const heddle_status status = there.synchronize(stream_of(answer), &call);
    if (there.has(HEDDLE_DEVICE_DROPS_CALLBACKS)) fail_fences(answer, status);
    if (status == HEDDLE_OK) continue;
    if (auto origin = streams_.origin_of(there.failed_label(stream_of(answer)))) {
      known = true;
      failures.push_back({origin->step, origin->of_the_outer, status, std::move(call.error.text) + origin->inside});
      continue;
    }
    // Aborted streams do not report a cause.
    if (unknown.status == HEDDLE_OK || unknown.status == HEDDLE_ERROR_CANCELLED) unknown = {0, false, status, std::move(call.error.text)};
    const std::vector<uint32_t> after = steps_after(answer);
    suspects.insert(suspects.end(), after.begin(), after.end());
  }
  if (unknown.status == HEDDLE_OK || known) return;
  // If no work came after the last successful fences, any step may have failed.
  if (suspects.empty()) suspects = steps_on(device);
  failures.push_back(blame(std::move(suspects), std::move(unknown)));
}

// If the device does not report the step, any step after the last fence that succeeded may have failed, on any stream that failed.
StreamAnswers::Failure StreamAnswers::blame(std::vector<uint32_t> suspects, Failure failure) const {
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

// Returns the steps on the stream after the last fence that succeeded.
std::vector<uint32_t> StreamAnswers::steps_after(const Answer& answer) const {
  std::vector<uint32_t> steps;
  for (uint32_t i = answer.passed.load(std::memory_order_relaxed); i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (work && work->device == answer.device && work->stream == answer.stream && work->kind != DeviceWork::Kind::fence) steps.push_back(i);
  }
  return steps;
}

std::vector<uint32_t> StreamAnswers::steps_on(uint32_t device) const {
  std::vector<uint32_t> steps;
  for (uint32_t i = 0; i < plan_.steps.size(); ++i)
    if (const DeviceWork* work = plan_.steps[i].on_device.get(); work && work->device == device && work->kind != DeviceWork::Kind::fence)
      steps.push_back(i);
  return steps;
}

// Registers streams whose callback was not called. Others may have completed by now, too: the next drain synchronises them.
void StreamAnswers::note_unanswered(const LeftWork& left) {
  const MutexLock lock(mutex_);
  const auto missing = std::count_if(answers_.begin(), answers_.end(),
                                     [](const Answer& answer) { return answer.state.state() == StreamState::State::asked; });
  if (missing == 0)
    unanswered_ = nullptr;
  else if (!unanswered_)
    unanswered_ = left.add(std::make_shared<Unanswered::Count>(static_cast<uint32_t>(missing)), first_unanswered());
}

std::string StreamAnswers::first_unanswered() const {
  for (const Answer& answer : answers_) {
    if (!answer.state.was_asked()) continue;
    const std::vector<uint32_t> steps = steps_after(answer);
    return fmt::format("device {} still runs {}", quoted(device_of(answer).name()),
                       steps.empty() ? "what it was given" : quoted(plan_.steps[steps.front()].name));
  }
  return {};
}

}  // namespace heddle
