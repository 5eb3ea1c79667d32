#include "session/quarantine.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "plugin/host.h"

namespace heddle {

void Quarantine::keep(Kept kept) {
  sweep();
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(kept));
}

void Quarantine::sweep() {
  std::vector<Kept> answered;  // destroyed behind the lock
  const std::lock_guard lock(mutex_);
  const auto gone = std::stable_partition(kept_.begin(), kept_.end(), [](const Kept& k) { return !k.execution->answered().ok(); });
  std::move(gone, kept_.end(), std::back_inserter(answered));
  kept_.erase(gone, kept_.end());
}

size_t Quarantine::size() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

Quarantine::~Quarantine() {
  // Known to the process, though never freed.
  static std::mutex left_mutex;
  static auto* const left_behind = new std::vector<Kept>();
  const std::lock_guard lock(left_mutex);
  for (Kept& kept : kept_) {
    const Status status = kept.execution->answered();
    if (status.ok()) continue;
    log_line(HEDDLE_LOG_WARNING, fmt::format("{}: what it works with is left behind", status.diagnostic().message));
    left_behind->push_back(std::move(kept));
  }
}

}  // namespace heddle
