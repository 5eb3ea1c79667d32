#include "run/device/stream_answers.h"

#include <algorithm>
#include <chrono>
#include <thread>

#include "base/threads/clock.h"
#include "base/threads/interruption.h"
#include "base/threads/patience.h"

namespace heddle {
namespace {

size_t stream_count(const Plan& plan) {
  size_t count = 0;
  for (const PlanDevice& device : plan.devices) count += device.stream_classes.size();
  return count;
}

}  // namespace

StreamAnswers::StreamAnswers(const DeviceStreams& streams)
    : streams_(streams), plan_(streams.plan()), answers_(stream_count(plan_)), awaited_(plan_.steps.size()) {
  uint32_t next = 0;
  for (uint32_t d = 1; d <= streams.device_count(); ++d) {
    first_.push_back(next);
    for (uint32_t s = 0; s < streams.stream_count(d); ++s, ++next) {
      answers_[next].answers = this;
      answers_[next].device = d;
      answers_[next].stream = s;
    }
  }
  for (Awaited& awaited : awaited_) awaited.answers = this;
}

void StreamAnswers::begin(bool (*stops)(void* user), void* user) {
  stops_ = stops;
  user_ = user;
  for (Answer& answer : answers_) {
    answer.passed.store(0, std::memory_order_relaxed);
    if (answer.state.state() == StreamState::State::worked) answer.state.on_alone(StreamRules::Event::begin);
  }
  aborted_.store(false, std::memory_order_relaxed);
  if (plan_.joins_tail) streams_.commit_words() = {0, CommitWords::none};
  aborts_.store(Aborts::any);
}

// ---------------------------------------------------------------- fences

void StreamAnswers::expect_fence(uint32_t step, const Fence& fence) {
  Awaited& awaited = awaited_[step];
  awaited.step = static_cast<uint32_t>(plan_.steps[step].on_device->fence);
  awaited.fence = fence;
  awaited.open.store(true, std::memory_order_release);
}

bool StreamAnswers::withdraw(uint32_t step) {
  return awaited_[step].open.exchange(false, std::memory_order_acq_rel);
}

void StreamAnswers::fence_reached(void* awaited, heddle_status failed, const char*, size_t) {
  Awaited& reached = *static_cast<Awaited*>(awaited);
  reached.answers->complete(reached, failed);
}

// After this the run may be over and this object destroyed.
void StreamAnswers::complete(Awaited& awaited, heddle_status failed) {
  if (!awaited.open.exchange(false, std::memory_order_acq_rel)) return;
  const DeviceWork& planned = *plan_.steps[awaited.step].on_device;
  if (failed == HEDDLE_OK) answer_of(planned).passed.store(awaited.step + 1, std::memory_order_relaxed);
  awaited.fence.passed(awaited.fence.user, failed);
}

bool StreamAnswers::must_look() const {
  return std::any_of(plan_.devices.begin(), plan_.devices.end(),
                     [](const PlanDevice& planned) { return planned.device->has(HEDDLE_DEVICE_DROPS_CALLBACKS); });
}

void StreamAnswers::look() {
  forget_entered_device();  // other devices are called here, and other code was called before
  for (const Answer& answer : answers_) {
    if (!device_of(answer).has(HEDDLE_DEVICE_DROPS_CALLBACKS) || answer.state.state() == StreamState::State::idle) continue;
    const heddle_status status = device_of(answer).query(stream_of(answer));
    if (status != HEDDLE_OK && status != HEDDLE_PENDING) fail_fences(answer, status);
  }
}

// Completes the fences of a stream that has ended without calling back.
void StreamAnswers::fail_fences(const Answer& of, heddle_status status) {
  for (uint32_t i = 0; i < plan_.steps.size(); ++i) {
    const DeviceWork* work = plan_.steps[i].on_device.get();
    if (work && work->device == of.device && work->stream == of.stream && work->fence >= 0) complete(awaited_[i], status);
  }
}

// ---------------------------------------------------------------- aborts

// Takes no lock: a device may call back from inside abort_stream, and the callback may abort again.
void StreamAnswers::abort(bool all) {
  ++aborting_;
  if (aborts_ != Aborts::none && plan_.joins_tail) std::atomic_ref(streams_.commit_words().stop).store(1, std::memory_order_relaxed);
  if (aborts_ >= (all ? Aborts::of_all : Aborts::any)) {
    aborted_ = true;
    for (const Answer& answer : answers_)
      if (device_of(answer).can_abort()) device_of(answer).abort(stream_of(answer));
  }
  --aborting_;
}

bool StreamAnswers::end_aborts(bool all) {
  aborts_ = all ? Aborts::none : Aborts::of_all;
  while (aborting_ != 0) std::this_thread::yield();
  return aborted_;
}

// ---------------------------------------------------------------- asking a stream, and waiting for its answer

// Enqueues a callback on the stream, unless one is enqueued already.
void StreamAnswers::ask(Answer& answer) {
  if (answer.state.was_asked()) return;
  answer.state.on_alone(StreamRules::Event::ask);
  heddle_work callback = {};
  callback.callback = answered;
  callback.user = &answer;
  if (streams_.enqueue(device_of(answer), stream_of(answer), callback, DeviceStreams::no_label, nullptr) == HEDDLE_OK) return;
  // A stream that accepts no more work has failed: synchronize reports how. What it still has may wait for a part of a group elsewhere that
  // is not to come.
  if (device_of(answer).can_abort()) device_of(answer).abort(stream_of(answer));
  const MutexLock lock(mutex_);
  if (answer.state.state() == StreamState::State::asked) answer.state.on_alone(StreamRules::Event::answer);
  answer.failed = HEDDLE_ERROR_INTERNAL;
}

void StreamAnswers::answered(void* user, heddle_status failed, const char*, size_t) {
  Answer& answer = *static_cast<Answer*>(user);
  StreamAnswers& answers = *answer.answers;
  const MutexLock lock(answers.mutex_);
  if (answer.state.state() != StreamState::State::asked) return;  // a query has found it before
  answer.failed = failed;
  answer.state.on_alone(StreamRules::Event::answer);
  if (answers.unanswered_) answers.unanswered_->answer();
  answers.changed_.notify_all();  // under the lock: after it the run may be destroyed
}

// Queries the streams of devices that may drop callbacks.
void StreamAnswers::query_asked() {
  for (Answer& answer : answers_) {
    if (answer.state.state() != StreamState::State::asked || !device_of(answer).has(HEDDLE_DEVICE_DROPS_CALLBACKS)) continue;
    const heddle_status status = device_of(answer).query(stream_of(answer));
    if (status != HEDDLE_PENDING) answered(&answer, status, nullptr, 0);
  }
}

// Where devices may drop callbacks, the wait is cut into slices, with a query before each.
template <class Done>
bool StreamAnswers::wait_for(double ns, const Done& done) {
  constexpr std::chrono::nanoseconds look_again = std::chrono::milliseconds(2);
  const bool looks = must_look();
  for (auto left = std::chrono::nanoseconds(static_cast<int64_t>(ns));;) {
    if (looks) query_asked();
    const auto slice = looks ? std::min(left, look_again) : left;
    const MutexLock lock(mutex_);
    if (changed_.wait_for(mutex_, slice, done)) return true;
    left -= slice;
    if (left.count() <= 0) return false;
  }
}

bool StreamAnswers::wait_for_stream(double ns, const Answer& answer) {
  return wait_for(ns, [&] { return answer.state.state() == StreamState::State::answered; });
}

bool StreamAnswers::wait_for_all(double ns) {
  return wait_for(ns, [this] {
    return std::none_of(answers_.begin(), answers_.end(), [](const Answer& a) { return a.state.state() == StreamState::State::asked; });
  });
}

heddle_status StreamAnswers::wait_for_answer(uint32_t step) {
  constexpr double look_again_ns = 5e6;
  const double after_stop_ns = step < plan_.graph.tail_begin ? answer_after_stop_ns : answer_after_failure_ns;
  Answer& answer = answer_of(*plan_.steps[step].on_device);
  ask(answer);
  Patience patience;
  while (!wait_for_stream(look_again_ns, answer))
    if (patience.is_over(ticks(), stops_(user_), after_stop_ns)) return HEDDLE_PENDING;
  const heddle_status failed = answer.failed;
  answer.state.on_alone(StreamRules::Event::wait);
  return failed;
}

}  // namespace heddle
