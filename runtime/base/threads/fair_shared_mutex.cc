#include "base/threads/fair_shared_mutex.h"

#include <fmt/format.h>

#include <chrono>
#include <string>

#include "base/threads/clock.h"

namespace heddle {
namespace {

thread_local FairSharedMutex::Hold* innermost = nullptr;

}  // namespace

FairSharedMutex::Hold* FairSharedMutex::held_here() {
  return innermost;
}

FairSharedMutex::Helping::Helping(Hold* holds) : before_(innermost) {
  innermost = holds;
}
FairSharedMutex::Helping::~Helping() {
  innermost = before_;
}

FairSharedMutex::Outcome FairSharedMutex::Hold::enter(FairSharedMutex& turns, Use use, const Interruption& until) {
  for (const Hold* hold = innermost; hold; hold = hold->outer_)
    if (hold->turns_ == &turns) return Outcome::held;
  const Outcome outcome = turns.wait(use, until);
  if (outcome != Outcome::entered) return outcome;
  turns_ = &turns;
  use_ = use;
  outer_ = innermost;
  innermost = this;
  return outcome;
}

void FairSharedMutex::Hold::leave() {
  if (!turns_) return;
  // The innermost as a rule; holds that end out of order are taken out of the middle.
  for (Hold** at = &innermost; *at; at = &(*at)->outer_)
    if (*at == this) {
      *at = outer_;
      break;
    }
  turns_->leave(use_);
  turns_ = nullptr;
}

FairSharedMutex::Outcome FairSharedMutex::Hold::upgrade(const Interruption& until) {
  const Outcome outcome = turns_->upgrade(until);
  if (outcome == Outcome::entered) use_ = Use::alone;
  return outcome;
}

// Waiters are notified under the lock: once they continue, they and the mutex may be destroyed.
void FairSharedMutex::notify(TurnWaiter& waiter) {
  static_cast<Waiter&>(waiter).called.notify_one();
}

FairSharedMutex::Outcome FairSharedMutex::wait(Use use, const Interruption& until) {
  const MutexLock lock(mutex_);
  if (queue_.enter(use)) return Outcome::entered;
  Waiter waiter;
  waiter.use = use;
  queue_.wait(waiter);
  const Outcome outcome = wait_until_admitted(waiter, until);
  if (outcome != Outcome::entered) queue_.remove(waiter, notify);
  return outcome;
}

FairSharedMutex::Outcome FairSharedMutex::upgrade(const Interruption& until) {
  const MutexLock lock(mutex_);
  if (queue_.upgrade()) return Outcome::entered;
  Waiter waiter;
  queue_.wait_for_upgrade(waiter);
  const Outcome outcome = wait_until_admitted(waiter, until);
  if (outcome != Outcome::entered) queue_.give_up_upgrade(notify);
  return outcome;
}

FairSharedMutex::Outcome FairSharedMutex::wait_until_admitted(Waiter& waiter, const Interruption& until) {
  for (;;) {
    if (waiter.admitted) return Outcome::entered;
    const bool cancelled = until.cancelled(), has_deadline = until.deadline_ticks() != 0;
    const auto left = has_deadline ? left_until(until.deadline_ticks()) : std::chrono::nanoseconds(0);
    if (cancelled || (has_deadline && left.count() == 0)) return cancelled ? Outcome::cancelled : Outcome::late;
    if (has_deadline)
      waiter.called.wait_for(mutex_, left);
    else
      waiter.called.wait(mutex_);
  }
}

void FairSharedMutex::leave(Use use) {
  const MutexLock lock(mutex_);
  queue_.leave(use, notify);
}

void FairSharedMutex::wake() {
  const MutexLock lock(mutex_);
  queue_.for_each(notify);
}

size_t FairSharedMutex::waiting() const {
  const MutexLock lock(mutex_);
  size_t count = 0;
  queue_.for_each([&](const TurnWaiter&) { ++count; });
  return count;
}

Status turn_status(FairSharedMutex::Outcome outcome, std::string_view what) {
  if (outcome == FairSharedMutex::Outcome::entered) return {};
  if (outcome == FairSharedMutex::Outcome::cancelled) return {Code::cancelled, fmt::format("cancelled while it waited for {}", what)};
  if (outcome == FairSharedMutex::Outcome::late)
    return {Code::deadline_exceeded, fmt::format("the deadline passed during the wait for {}", what),
            fmt::format("allow more time, or let fewer runs use {}", what)};
  return {Code::busy, fmt::format("the calling thread is in a run that holds {}", what), "call it when the run is over"};
}

}  // namespace heddle
