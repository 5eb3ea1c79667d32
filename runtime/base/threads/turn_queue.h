// TurnQueue: who has a turn with something that readers share, and who comes next: the decisions alone, without threads and clocks.
// FairSharedMutex adds these; tests/base walks through all that may happen.
//
// An updater shares it with readers and, when it asks for that, has it alone to the end of its turn; there is one at a time. Turns are
// given in order of arrival, except that an updater which asks to have it alone comes before all that wait: they would wait for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heddle {

enum class TurnUse : uint8_t { shared, updating, alone };

// One that waits. Belongs to who waits, and must stay in place until it is admitted or removed.
struct TurnWaiter {
  TurnUse use = TurnUse::shared;
  bool admitted = false;
  TurnWaiter* next = nullptr;
};

class TurnQueue {
 public:
  TurnQueue() = default;
  TurnQueue(const TurnQueue&) = delete;
  TurnQueue& operator=(const TurnQueue&) = delete;

  // Takes a turn; false: it is not free, or others wait.
  bool enter(TurnUse use) {
    if (first_ || !is_free(use)) return false;
    take(use);
    return true;
  }
  void wait(TurnWaiter& waiter) {
    *end_ = &waiter;
    end_ = &waiter.next;
  }
  // An updater, whose turn is `updating`, asks to have it alone from now on. False: it must wait until readers have left.
  bool upgrade() {
    if (readers_ > 0) return false;
    holder_ = TurnUse::alone;
    return true;
  }
  void wait_for_upgrade(TurnWaiter& waiter) { upgrade_ = &waiter; }

  // The following call `called(waiter)` for each waiter that they admit; it may go as soon as it is called.
  template <class Called>
  void leave(TurnUse use, const Called& called) {
    if (use == TurnUse::shared)
      --readers_;
    else
      holder_ = TurnUse::shared;
    admit(called);
  }
  // The waiter gives up; those after it may have waited for it alone.
  template <class Called>
  void remove(const TurnWaiter& waiter, const Called& called) {
    for (TurnWaiter** at = &first_; *at; at = &(*at)->next)
      if (*at == &waiter) {
        *at = waiter.next;
        if (!*at) end_ = at;
        break;
      }
    admit(called);
  }
  template <class Called>
  void give_up_upgrade(const Called& called) {
    upgrade_ = nullptr;
    admit(called);
  }

  // Visits all that wait.
  template <class Visit>
  void for_each(const Visit& visit) const {
    if (upgrade_) visit(*upgrade_);
    for (TurnWaiter* waiter = first_; waiter; waiter = waiter->next) visit(*waiter);
  }
  size_t readers() const { return readers_; }
  // Who besides readers has a turn: `updating`, `alone`, or `shared` where there is no such turn.
  TurnUse holder() const { return holder_; }

 private:
  bool is_free(TurnUse use) const {
    if (use == TurnUse::shared) return holder_ != TurnUse::alone && !upgrade_;
    return holder_ == TurnUse::shared && (use == TurnUse::updating || readers_ == 0);
  }
  void take(TurnUse use) {
    if (use == TurnUse::shared)
      ++readers_;
    else
      holder_ = use;
  }
  template <class Called>
  void admit(const Called& called) {
    if (upgrade_ && readers_ == 0) {
      TurnWaiter& updater = *upgrade_;
      upgrade_ = nullptr;
      holder_ = TurnUse::alone;
      updater.admitted = true;
      called(updater);
    }
    while (first_ && is_free(first_->use)) {
      TurnWaiter& next = *first_;
      first_ = next.next;
      if (!first_) end_ = &first_;
      take(next.use);
      next.admitted = true;
      called(next);
    }
  }

  size_t readers_ = 0;
  TurnUse holder_ = TurnUse::shared;
  TurnWaiter* upgrade_ = nullptr;  // the updater that waits to have it alone
  TurnWaiter* first_ = nullptr;    // in order of arrival
  TurnWaiter** end_ = &first_;
};

}  // namespace heddle
