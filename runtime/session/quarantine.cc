#include "session/quarantine.h"

#include <fmt/format.h>

#include <utility>

#include "base/exceptions.h"
#include "base/threads/mutex.h"
#include "plugin/host.h"

namespace heddle {

void Quarantine::keep(std::unique_ptr<Execution> execution, std::shared_ptr<Workspace> workspace) noexcept {
  sweep();
  execution->kept().workspace = std::move(workspace);
  const MutexLock lock(mutex_);
  execution->kept().next = std::move(first_);
  first_ = std::move(execution);
}

void Quarantine::sweep() noexcept {
  std::unique_ptr<Execution> answered;  // destroyed after the lock is released
  {
    const MutexLock lock(mutex_);
    for (std::unique_ptr<Execution>* at = &first_; *at;) {
      if (!(*at)->look_for_answers()) {
        at = &(*at)->kept().next;
        continue;
      }
      std::unique_ptr<Execution> found = std::exchange(*at, std::move((*at)->kept().next));
      found->kept().next = std::move(answered);
      answered = std::move(found);
    }
  }
  // Destroy one after the other, and each before the workspace that it works in.
  while (answered) {
    const std::shared_ptr<Workspace> workspace = std::move(answered->kept().workspace);
    answered = std::move(answered->kept().next);
  }
}

size_t Quarantine::size() const {
  const MutexLock lock(mutex_);
  size_t count = 0;
  for (const std::unique_ptr<Execution>* at = &first_; *at; at = &(*at)->kept().next) ++count;
  return count;
}

Quarantine::~Quarantine() {
  // Kept reachable by the process, though never freed.
  static Mutex left_mutex;
  static Execution* left_behind HEDDLE_GUARDED_BY(left_mutex) = nullptr;
  sweep();
  const MutexLock lock(left_mutex);
  while (first_) {
    Execution& left = *first_;
    without_exceptions([&] {
      if (const auto unanswered = left.unanswered())
        log_line(HEDDLE_LOG_WARNING, fmt::format("{}: what it works with is left behind", unanswered->message()));
    });
    std::unique_ptr<Execution> next = std::move(first_->kept().next);
    first_->kept().next.reset(left_behind);
    left_behind = first_.release();
    first_ = std::move(next);
  }
}

}  // namespace heddle
