#include "run/workspace.h"

#include <new>

#include "base/text.h"

namespace heddle {

Status Workspace::reserve(const Plan& plan) {
  const int64_t bytes = plan.context_bytes();
  if (bytes <= host_bytes_) return {};
  std::byte* grown = nullptr;
  try {
    memory_ = nullptr;  // never both at once
    memory_ = Blob::allocate(DType::u8, Shape{bytes}, &grown);
  } catch (const std::bad_alloc&) {
    host_ = nullptr;
    host_bytes_ = 0;
    return {Code::out_of_memory, "no memory for an arena of " + human_bytes(bytes), "use smaller inputs or fewer contexts"};
  }
  host_ = grown;
  host_bytes_ = bytes;
  return {};
}

std::shared_ptr<Workspace> WorkspacePool::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::shared_ptr<Workspace> workspace = std::move(idle_.back());
      idle_.pop_back();
      return workspace;
    }
  }
  return std::make_shared<Workspace>();
}

void WorkspacePool::give_back(std::shared_ptr<Workspace> workspace) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(workspace));
}

void WorkspacePool::trim(int64_t keep_bytes) {
  std::vector<std::shared_ptr<Workspace>> dropped;  // freed behind the lock
  const std::lock_guard lock(mutex_);
  int64_t held = 0;
  for (const auto& workspace : idle_) held += workspace->bytes();
  while (!idle_.empty() && (keep_bytes <= 0 || held > keep_bytes)) {
    held -= idle_.front()->bytes();
    dropped.push_back(std::move(idle_.front()));
    idle_.erase(idle_.begin());
  }
}

int64_t WorkspacePool::idle_bytes() const {
  const std::lock_guard lock(mutex_);
  int64_t held = 0;
  for (const auto& workspace : idle_) held += workspace->bytes();
  return held;
}

}  // namespace heddle
