#include "memory/workspace.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <new>
#include <utility>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"

namespace heddle {

namespace {

uint64_t new_generation() {
  static std::atomic<uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

Workspace::Workspace() : generation_(new_generation()) {}

// Frees the old memory before it allocates more: both at once may not fit.
Status Workspace::reserve(int64_t bytes, int64_t pinned, const std::shared_ptr<Device>& pinned_by) {
  const bool pins = pinned > 0 && pinned_by && pinned_by->pins();
  const bool is_pinned = pinned_by_ && !pinned_by_->retired() && pinned <= pinned_bytes_;
  if (bytes <= host_bytes_ && (!pins || is_pinned)) return {};
  generation_ = new_generation();
  registration_ = {};
  memory_ = nullptr;
  pinned_ = {};
  const std::shared_ptr<Device> by = pins ? pinned_by : pinned_by_ && !pinned_by_->retired() ? pinned_by_ : nullptr;
  pinned_by_ = nullptr;
  host_ = nullptr;
  bytes = std::max(bytes, std::exchange(host_bytes_, 0));
  pinned = std::max(pins ? pinned : 0, std::exchange(pinned_bytes_, 0));
  if (by && !by->registers()) {
    HEDDLE_TRY(pinned_, by->allocate_pinned(bytes), "while the memory of a run was set up");
    host_ = static_cast<std::byte*>(pinned_.get());
  } else {
    try {
      memory_ = Blob::allocate(DType::u8, Shape{bytes}, &host_);
    } catch (const std::bad_alloc&) {
      return {Code::out_of_memory, fmt::format("no memory for an arena of {}", human_bytes(bytes)), "use smaller inputs or fewer contexts"};
    }
    if (by) {
      HEDDLE_TRY(registration_, by->pin(host_ + (bytes - pinned), pinned), "while the memory of a run was set up");
    }
  }
  pinned_by_ = by;
  if (by) pinned_bytes_ = pinned;
  host_bytes_ = bytes;
  return {};
}

Workspace::Side& Workspace::side_of(const std::shared_ptr<Device>& device) {
  for (Side& s : sides_)
    if (s.device == device) return s;
  Side& made = sides_.emplace_back();
  made.device = device;
  return made;
}

Status Workspace::reserve_on(const std::shared_ptr<Device>& device, int64_t bytes) {
  if (bytes <= bytes_on(*device)) return {};
  generation_ = new_generation();
  Side& s = side_of(device);
  s.bytes = 0;
  s.memory = {};
  HEDDLE_TRY(s.memory, device->allocate(bytes), "while the memory of a run was set up");
  s.bytes = bytes;
  return {};
}

Status Workspace::reserve_queues(const std::shared_ptr<Device>& device, const std::vector<int32_t>& classes, uint32_t events) {
  Side& s = side_of(device);
  for (size_t c = 0; c < stream_classes; ++c) {
    const auto stream_class = static_cast<int32_t>(c);
    const auto wanted = static_cast<size_t>(std::count(classes.begin(), classes.end(), stream_class));
    while (s.streams[c].size() < wanted) {
      HEDDLE_TRY(DeviceStream stream, device->create_stream(stream_class));
      s.streams[c].push_back(std::move(stream));
    }
  }
  while (s.events.size() < events) {
    HEDDLE_TRY(DeviceEvent event, device->create_event());
    s.events.push_back(std::move(event));
  }
  return {};
}

void* Workspace::stream(const Device& device, int32_t stream_class, size_t k) const {
  return side(device)->streams[static_cast<size_t>(stream_class)][k].get();
}

void* Workspace::event(const Device& device, size_t k) const {
  return side(device)->events[k].get();
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
  return (pinned_by_ && pinned_by_->retired()) ||
         std::any_of(sides_.begin(), sides_.end(), [](const Side& s) { return s.device->retired(); });
}

int64_t WorkspaceNeeds::total() const {
  int64_t total = host_bytes;
  for (const auto& [device, bytes] : on_devices) total += bytes;
  return total;
}

namespace {

// A workspace may hold so many times as much as is needed, and lack so much to be grown.
constexpr int64_t max_times = 2;

bool has_all(const Workspace& workspace, const WorkspaceNeeds& needs) {
  return workspace.host_bytes() >= needs.host_bytes && std::all_of(needs.on_devices.begin(), needs.on_devices.end(), [&](const auto& need) {
           return workspace.bytes_on(*need.first) >= need.second;
         });
}

}  // namespace

std::shared_ptr<Workspace> WorkspacePool::take(const WorkspaceNeeds& needs) {
  const int64_t total = needs.total();
  std::shared_ptr<Workspace> last = last_.exchange();
  if (last && !last->keeps_retired() && has_all(*last, needs) && last->bytes() / max_times <= total) return last;
  std::shared_ptr<Workspace> taken;
  std::vector<std::shared_ptr<Workspace>> dropped;  // freed after the lock is released
  {
    const MutexLock lock(mutex_);
    if (last) idle_.push_back(std::move(last));
    file_last();
    const auto retired = [](const auto& workspace) { return workspace->keeps_retired(); };
    dropped.reserve(static_cast<size_t>(std::count_if(idle_.begin(), idle_.end(), retired)));  // may throw, before anything is moved
    for (auto& workspace : idle_)
      if (retired(workspace)) dropped.push_back(std::move(workspace));
    std::erase(idle_, nullptr);
    auto best = idle_.end();
    bool best_has_all = false;
    for (auto at = idle_.begin(); at != idle_.end(); ++at) {
      const int64_t held = (*at)->bytes();
      const bool all = has_all(**at, needs);
      // Takes one of the right size or, to grow, one that is not much smaller.
      if (held / max_times > total || (!all && held < total / max_times)) continue;
      const bool better = best == idle_.end() || (all != best_has_all ? all : all ? held <= (*best)->bytes() : held >= (*best)->bytes());
      if (!better) continue;
      best = at;
      best_has_all = all;
    }
    if (best != idle_.end()) {
      taken = std::move(*best);
      idle_.erase(best);
    }
  }
  return taken ? taken : std::make_shared<Workspace>();
}

void WorkspacePool::give_back(std::shared_ptr<Workspace> workspace) noexcept {
  if (workspace->keeps_retired()) return;
  std::shared_ptr<Workspace> other = last_.exchange(std::move(workspace));
  if (!other) return;
  without_exceptions([&] {
    const MutexLock lock(mutex_);
    idle_.push_back(std::move(other));
  });
}

void WorkspacePool::file_last() {
  if (std::shared_ptr<Workspace> last = last_.exchange()) idle_.push_back(std::move(last));
}

void WorkspacePool::trim(int64_t keep_bytes) noexcept {
  without_exceptions([&] {  // where there is no memory to file it, it is freed
    const MutexLock lock(mutex_);
    file_last();
  });
  for (;;) {
    std::shared_ptr<Workspace> dropped;  // freed after the lock is released
    const MutexLock lock(mutex_);
    int64_t held = 0;
    for (const auto& workspace : idle_) held += workspace->bytes();
    if (idle_.empty() || (keep_bytes > 0 && held <= keep_bytes)) return;
    dropped = std::move(idle_.front());
    idle_.erase(idle_.begin());
  }
}

int64_t WorkspacePool::idle_bytes() {
  const MutexLock lock(mutex_);
  file_last();
  int64_t held = 0;
  for (const auto& workspace : idle_) held += workspace->bytes();
  return held;
}

}  // namespace heddle
