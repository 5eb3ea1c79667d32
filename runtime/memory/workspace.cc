#include "memory/workspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>

#include "base/text.h"

namespace heddle {

namespace {

uint64_t new_generation() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

// What is there goes before more is asked for: both at once may not fit.
Status Workspace::reserve(int64_t bytes) {
  if (bytes <= host_bytes_) return {};
  generation_ = new_generation();
  memory_ = nullptr;
  host_ = nullptr;
  host_bytes_ = 0;
  try {
    memory_ = Blob::allocate(DType::u8, Shape{bytes}, &host_);
  } catch (const std::bad_alloc&) {
    return {Code::out_of_memory, fmt::format("no memory for an arena of {}", human_bytes(bytes)), "use smaller inputs or fewer contexts"};
  }
  host_bytes_ = bytes;
  return {};
}

Status Workspace::reserve_on(const std::shared_ptr<Device>& device, int64_t bytes) {
  if (bytes <= bytes_on(*device)) return {};
  generation_ = new_generation();
  std::erase_if(sides_, [&](const Side& s) { return s.device == device; });
  HEDDLE_TRY(DeviceMemory memory, device->allocate(bytes), "while the memory of a run was set up");
  sides_.push_back({device, std::move(memory), bytes});
  return {};
}

const Workspace::Side* Workspace::side(const Device& device) const {
  for (const Side& s : sides_)
    if (s.device.get() == &device) return &s;
  return nullptr;
}

std::byte* Workspace::on(const Device& device) const {
  const Side* found = side(device);
  return found ? static_cast<std::byte*>(found->memory.get()) : nullptr;
}

int64_t Workspace::bytes_on(const Device& device) const {
  const Side* found = side(device);
  return found ? found->bytes : 0;
}

int64_t Workspace::bytes() const {
  int64_t total = host_bytes_;
  for (const Side& s : sides_) total += s.bytes;
  return total;
}

bool Workspace::keeps_retired() const {
  return std::any_of(sides_.begin(), sides_.end(), [](const Side& s) { return s.device->retired(); });
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
  if (workspace->keeps_retired()) return;
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
