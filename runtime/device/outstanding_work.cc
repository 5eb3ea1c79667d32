#include "device/outstanding_work.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/exceptions.h"
#include "plugin/host.h"

namespace heddle {
namespace {

// Destroys a chain of items one after the other: an item would destroy the next one inside its own destructor.
void destroy(std::shared_ptr<Unanswered> first, std::shared_ptr<Unanswered> Unanswered::*next) noexcept {
  while (first) first = std::move((*first).*next);
}

// Puts the first entry of a chain at the begin of another one. [both need what protects their chain]
template <class Pointer, class Next>
void move_first(Pointer& from, Pointer& to, Next next) noexcept {
  Pointer moved = std::exchange(from, std::move((*from).*next));
  (*moved).*next = std::move(to);
  to = std::move(moved);
}

}  // namespace

BusyName new_busy_name() noexcept {
  static std::atomic<uint64_t> last{0};
  return BusyName{last.fetch_add(1, std::memory_order_relaxed) + 1};
}

bool Unanswered::keeps_busy(BusyName name) const noexcept {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

// ---------------------------------------------------------------- what is busy

void OutstandingWork::add(std::shared_ptr<Unanswered> item) noexcept {
  const MutexLock lock(mutex_);
  item->next_ = std::move(first_);
  first_ = std::move(item);
  entries_.fetch_add(1, std::memory_order_release);
}

// Returns a chain of the items that have completed, which the caller must destroy after it has released the lock.
std::shared_ptr<Unanswered> OutstandingWork::take_completed() const {
  std::shared_ptr<Unanswered> completed;
  for (std::shared_ptr<Unanswered>* at = &first_; *at;) {
    if (!(*at)->completed()) {
      at = &(*at)->next_;
      continue;
    }
    move_first(*at, completed, &Unanswered::next_);
    entries_.fetch_sub(1, std::memory_order_release);
  }
  return completed;
}

void OutstandingWork::remove(const Unanswered* item) noexcept {
  std::shared_ptr<Unanswered> removed;
  const MutexLock lock(mutex_);
  for (std::shared_ptr<Unanswered>* at = &first_; *at; at = &(*at)->next_)
    if (at->get() == item) {
      move_first(*at, removed, &Unanswered::next_);
      entries_.fetch_sub(1, std::memory_order_release);
      return;
    }
}

std::shared_ptr<const Unanswered> OutstandingWork::item(BusyName name) const noexcept {
  if (entries_.load(std::memory_order_acquire) == 0) return nullptr;
  std::shared_ptr<Unanswered> completed, found;
  {
    const MutexLock lock(mutex_);
    completed = take_completed();
    for (const std::shared_ptr<Unanswered>* at = &first_; *at; at = &(*at)->next_) {
      const bool own = (*at)->names_.front() == name;
      if (own || (!found && (*at)->keeps_busy(name))) found = *at;
      if (own) break;
    }
  }
  destroy(std::move(completed), &Unanswered::next_);
  return found;
}

Status OutstandingWork::busy(BusyName name) const {
  const std::shared_ptr<const Unanswered> found = item(name);
  return found ? found->busy() : Status();
}

size_t OutstandingWork::items() const {
  size_t count = 0;
  const MutexLock lock(mutex_);
  for (const std::shared_ptr<Unanswered>* at = &first_; *at; at = &(*at)->next_) count += (*at)->completed() ? 0 : 1;
  return count;
}

// ---------------------------------------------------------------- what has to stay alive

void OutstandingWork::keep(std::unique_ptr<Kept> kept, std::shared_ptr<const void> works_in) noexcept {
  kept->works_in_ = std::move(works_in);
  const MutexLock lock(mutex_);
  kept->next_ = std::move(first_kept_);
  first_kept_ = std::move(kept);
  ++kept_;
  entries_.fetch_add(1, std::memory_order_release);
}

// Objects are looked at outside the list, without the lock: devices are called.
void OutstandingWork::sweep_those(const BusyName* name) noexcept {
  if (entries_.load(std::memory_order_acquire) == 0) return;
  std::unique_ptr<Kept> looked_at, answered, waiting;
  {
    const MutexLock lock(mutex_);
    for (std::unique_ptr<Kept>* at = &first_kept_; *at;) {
      if (!name || (*at)->name_ == *name)
        move_first(*at, looked_at, &Kept::next_);
      else
        at = &(*at)->next_;
    }
  }
  size_t gone = 0;
  while (looked_at) {
    const bool done = looked_at->look_for_answers();
    gone += done ? 1 : 0;
    move_first(looked_at, done ? answered : waiting, &Kept::next_);
  }
  std::shared_ptr<Unanswered> completed;
  {
    const MutexLock lock(mutex_);
    while (waiting) move_first(waiting, first_kept_, &Kept::next_);
    kept_ -= gone;
    entries_.fetch_sub(gone, std::memory_order_release);
    completed = take_completed();
  }
  destroy(std::move(completed), &Unanswered::next_);
  // Destroys one after the other, and each before the memory that it works in.
  while (answered) {
    const std::shared_ptr<const void> works_in = std::move(answered->works_in_);
    answered = std::move(answered->next_);
  }
}

size_t OutstandingWork::kept() const {
  const MutexLock lock(mutex_);
  return kept_;
}

void OutstandingWork::abandon() noexcept {
  // Kept reachable by the process, though never freed.
  static Mutex left_mutex;
  static Kept* left_behind HEDDLE_GUARDED_BY(left_mutex) = nullptr;
  sweep();
  std::unique_ptr<Kept> first;
  {
    const MutexLock lock(mutex_);
    size_t left = 0;
    for (const std::unique_ptr<Kept>* at = &first_kept_; *at; at = &(*at)->next_) ++left;
    first = std::move(first_kept_);
    kept_ -= left;
    entries_.fetch_sub(left, std::memory_order_release);
  }
  while (first) {
    without_exceptions([&] {
      if (const auto unanswered = first->unanswered())
        log_line(HEDDLE_LOG_WARNING, fmt::format("{}: what it works with is never freed", unanswered->message()));
    });
    const MutexLock lock(left_mutex);
    Kept* const left = first.release();
    first = std::move(left->next_);
    left->next_.reset(left_behind);
    left_behind = left;
  }
}

OutstandingWork::~OutstandingWork() {
  abandon();
  destroy(std::move(first_), &Unanswered::next_);
}

}  // namespace heddle
