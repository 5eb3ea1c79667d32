// FairSharedMutex: a lock that readers share and a writer has alone, and that is fair. Threads are admitted in order of arrival: a reader
// that arrives after a waiting writer waits too, so neither side starves the other. An updater shares it with readers until it calls
// upgrade(), and then has it alone (base/threads/turn_queue.h). A wait ends with a deadline or a cancellation.
//
//   FairSharedMutex::Hold hold;
//   if (hold.enter(turns, FairSharedMutex::Use::alone, Interruption(deadline, &cancelled)) != FairSharedMutex::Outcome::entered) return
//   ...;
//
// Allocates nothing. A thread that enters a mutex which it holds already, directly or as a helper of a run that holds it, gets
// Outcome::held instead of a deadlock.
//
// It has no thread annotations: clang cannot follow a hold that is entered under one condition and left under another, or on another
// thread. Functions that need a hold say so in their comments ("REQUIRES: a turn").
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/threads/interruption.h"
#include "base/threads/mutex.h"
#include "base/threads/turn_queue.h"
#include "heddle/status.h"

namespace heddle {

// Thread-safe. Must outlive its holds.
class FairSharedMutex {
 public:
  using Use = TurnUse;
  enum class Outcome : uint8_t { entered, late, cancelled, held };

  // A turn, from enter() until the object is destroyed. Belongs to the thread that entered.
  class Hold {
   public:
    Hold() = default;
    ~Hold() { leave(); }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    // The object must not hold a turn already. The thread that sets the flag of `until` must call wake() afterwards.
    Outcome enter(FairSharedMutex& turns, Use use, const Interruption& until = {});
    // REQUIRES: it holds a turn with Use::updating. Waits until no reader is left, and has the mutex alone from then on. If the wait ends
    // early the turn is as before. [any thread, one at a time]
    Outcome upgrade(const Interruption& until = {});
    bool updates() const { return turns_ && use_ == Use::updating; }
    void leave();

   private:
    friend class FairSharedMutex;
    FairSharedMutex* turns_ = nullptr;
    Use use_ = Use::shared;
    Hold* outer_ = nullptr;  // the hold that this thread had before
  };

  // Returns the innermost hold of the calling thread: for the threads that help it.
  static Hold* held_here();
  // While this object exists, the calling thread works for a thread that holds `holds`.
  class Helping {
   public:
    explicit Helping(Hold* holds);
    ~Helping();
    Helping(const Helping&) = delete;
    Helping& operator=(const Helping&) = delete;

   private:
    Hold* const before_;
  };

  // Makes the waiting threads check their deadlines and cancellation flags. [any thread]
  void wake();
  // Returns the number of waiting threads.
  size_t waiting() const;

 private:
  struct Waiter : TurnWaiter {  // used under mutex_; no annotation: a nested type cannot name a member of the class around it
    Condition called;
  };
  static void notify(TurnWaiter& waiter);
  Outcome wait(Use use, const Interruption& until);
  Outcome upgrade(const Interruption& until);
  Outcome wait_until_admitted(Waiter& waiter, const Interruption& until) HEDDLE_REQUIRES(mutex_);
  void leave(Use use);

  mutable Mutex mutex_;
  TurnQueue queue_ HEDDLE_GUARDED_BY(mutex_);
};

// Converts the outcome of entering to a status; `what` is what the mutex protects, in a run's words ("the session's variables"). Ok when it
// entered. Errors: deadline_exceeded, cancelled, busy (the calling thread holds it already).
Status turn_status(FairSharedMutex::Outcome outcome, std::string_view what);

}  // namespace heddle
