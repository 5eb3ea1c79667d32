// OutstandingWork: the list of the work that calls have left with devices and asynchronous steps when they ended: runs that were given up
// and copies that were not waited for. It is the one place that knows what such work keeps busy, and what must stay alive meanwhile.
//
// A runtime owns one. What can be busy (an execution, a workspace, a session's variables, a device) has a name in it, and asks by that
// name whether it may be used. Names are numbers and never reused, unlike addresses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/threads/mutex.h"
#include "heddle/status.h"

namespace heddle {

// The name of something that outstanding work can keep busy.
enum class BusyName : uint64_t {};
// [any thread] Returns a name that nothing else in this process has.
BusyName new_busy_name() noexcept;

// One piece of outstanding work. Immutable except for its count; thread-safe.
class Unanswered {
 public:
  using Count = std::atomic<uint32_t>;
  static constexpr const char* default_hint = "use another context, or wait until it answers";
  // `left`: how many streams, steps or copies have not completed, counted down by the thread that learns of it. `message` names the device
  // or step, and what it runs. `names`: what the work keeps busy; first whose work it is. `hint`: what users are told to do; a
  // literal.
  Unanswered(std::shared_ptr<Count> left, std::string message, std::vector<BusyName> names, const char* hint = default_hint)
      : left_(std::move(left)), message_(std::move(message)), names_(std::move(names)), hint_(hint) {}
  Unanswered(uint32_t left, std::string message, std::vector<BusyName> names)
      : Unanswered(std::make_shared<Count>(left), std::move(message), std::move(names)) {}
  // Called when one of them has completed. Does nothing once all have.
  void answer() noexcept {
    uint32_t left = left_->load(std::memory_order_relaxed);
    while (left != 0 && !left_->compare_exchange_weak(left, left - 1, std::memory_order_release, std::memory_order_relaxed)) {
    }
  }
  bool completed() const noexcept { return left_->load(std::memory_order_acquire) == 0; }
  const std::string& message() const { return message_; }
  // The error for a caller that needs what the work keeps busy.
  Status busy() const { return {Code::busy, message_, hint_}; }
  bool keeps_busy(BusyName name) const noexcept;

 private:
  friend class OutstandingWork;
  const std::shared_ptr<Count> left_;
  const std::string message_;
  const std::vector<BusyName> names_;
  const char* const hint_;
  std::shared_ptr<Unanswered> next_;  // in the list; accessed under its lock
};

// Thread-safe. No plugin is called and nothing is destroyed under its lock.
class OutstandingWork {
 public:
  OutstandingWork() = default;
  OutstandingWork(const OutstandingWork&) = delete;
  OutstandingWork& operator=(const OutstandingWork&) = delete;
  // Does what abandon() does.
  ~OutstandingWork();

  // Adds `item`, which is in no list. It stays until all of it has completed. Needs no memory.
  void add(std::shared_ptr<Unanswered> item) noexcept;
  // Removes an item that another one replaces; one that is not there is ignored.
  void remove(const Unanswered* item) noexcept;
  // Returns busy if something keeps `name` busy: the error of item(). Takes no lock while nothing at all is outstanding.
  Status busy(BusyName name) const;
  // Returns the work that keeps `name` busy; null: none does. Of several it is one whose first name that is, and the one that was added
  // last. Drops what has completed.
  std::shared_ptr<const Unanswered> item(BusyName name) const noexcept;

  // An object that has to stay alive while work of it is outstanding.
  class Kept {
   public:
    // `name` is what the outstanding work keeps busy; sweep(name) looks for its answers.
    explicit Kept(BusyName name) : name_(name) {}
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;
    virtual ~Kept() = default;
    BusyName name() const { return name_; }
    // [one thread at a time] Queries the devices; true if no work is outstanding. Without memory it may not find that out.
    virtual bool look_for_answers() noexcept = 0;
    // Returns the work that is outstanding, for the log; null: none is.
    virtual std::shared_ptr<const Unanswered> unanswered() const = 0;

   private:
    friend class OutstandingWork;
    const BusyName name_;
    std::shared_ptr<const void> works_in_;
    std::unique_ptr<Kept> next_;
  };
  // Keeps an object until its work has completed, and after it `works_in`, the memory that it works in (null: memory of its own, or of a
  // caller who keeps that meanwhile). Needs no memory: destructors call it.
  void keep(std::unique_ptr<Kept> kept, std::shared_ptr<const void> works_in) noexcept;
  // Destroys the objects whose work has completed: all, or those that were made with `name`. Objects that another thread is sweeping at
  // this moment are left to it.
  void sweep() noexcept { sweep_those(nullptr); }
  void sweep(BusyName name) noexcept { sweep_those(&name); }
  // Gives up the objects that are kept: those whose work has not completed are never freed, and each is reported in the log. Called when
  // the runtime goes, because objects in the list may own the list.
  void abandon() noexcept;
  // The number of objects that are kept, and that of items that have not completed.
  size_t kept() const;
  size_t items() const;

 private:
  void sweep_those(const BusyName* name) noexcept;
  std::shared_ptr<Unanswered> take_completed() const HEDDLE_REQUIRES(mutex_);

  mutable Mutex mutex_;
  // Linked lists, the last one added first: adding needs no memory.
  mutable std::shared_ptr<Unanswered> first_ HEDDLE_GUARDED_BY(mutex_);
  std::unique_ptr<Kept> first_kept_ HEDDLE_GUARDED_BY(mutex_);
  size_t kept_ HEDDLE_GUARDED_BY(mutex_) = 0;  // counts those that are being swept, too
  // Items and kept objects; changed under the lock, and read without it. A thread that reads 0 sees what has completed.
  mutable std::atomic<size_t> entries_{0};
};

}  // namespace heddle
