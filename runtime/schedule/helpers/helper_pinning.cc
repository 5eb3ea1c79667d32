#include "schedule/helpers/helper_pinning.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/threads/mutex.h"

namespace heddle {

namespace {

// A set of one processor.
class ProcessorSet {
 public:
  explicit ProcessorSet(int processor)
      : bytes_(CPU_ALLOC_SIZE(static_cast<size_t>(processor) + 1)), set_(CPU_ALLOC(static_cast<size_t>(processor) + 1)) {
    if (!set_) return;
    CPU_ZERO_S(bytes_, set_.get());
    CPU_SET_S(static_cast<size_t>(processor), bytes_, set_.get());
  }
  // Pins `thread`. If the system does not allow it the thread stays unpinned: slower, never wrong.
  void take(pid_t thread) const noexcept {
    if (set_) sched_setaffinity(thread, bytes_, set_.get());
  }

 private:
  struct Free {
    void operator()(cpu_set_t* set) const { CPU_FREE(set); }
  };
  size_t bytes_;
  std::unique_ptr<cpu_set_t, Free> set_;
};

}  // namespace

struct HelperPinning::Table {
  struct Place {
    int processor;
    ProcessorSet set;                // made beforehand: helpers are moved when runs start, which allocates nothing
    pid_t helper = 0;                // 0: free
    std::atomic<uint32_t> taken{0};  // helper != 0, readable without the lock
    explicit Place(int at) : processor(at), set(at) {}
  };
  explicit Table(const std::vector<int>& processors) : places(processors.begin(), processors.end()) {}
  Mutex mutex;  // guards Place::helper; no annotation: the type comes before it
  std::vector<Place> places;

  void put(Place& place, pid_t thread) HEDDLE_REQUIRES(mutex) {
    place.helper = thread;
    place.taken.store(thread != 0 ? 1 : 0, std::memory_order_relaxed);
    if (thread != 0) place.set.take(thread);
  }
  Place* place_of(pid_t thread) HEDDLE_REQUIRES(mutex) {
    const auto it = std::find_if(places.begin(), places.end(), [&](const Place& p) { return p.helper == thread; });
    return it == places.end() ? nullptr : &*it;
  }
};

// A thread-local object of a helper: removes the thread from the table when it ends, before its id can be reused.
struct HelperPinning::Membership {
  std::weak_ptr<Table> table;
  ~Membership() {
    const std::shared_ptr<Table> alive = table.lock();
    if (!alive) return;
    const MutexLock lock(alive->mutex);
    if (Table::Place* place = alive->place_of(gettid())) alive->put(*place, 0);
  }
};

HelperPinning::HelperPinning(const std::vector<int>& processors) : table_(std::make_shared<Table>(processors)) {}
HelperPinning::~HelperPinning() = default;

void HelperPinning::enter() {
  thread_local Membership membership;
  if (table_->places.size() < 2) return;
  // Only this thread makes itself a member, so this check needs no lock.
  if (membership.table.lock() == table_) return;
  const MutexLock lock(table_->mutex);
  Table::Place* free = nullptr;
  for (Table::Place& place : table_->places)
    if (place.helper == 0) free = &place;
  // One processor is left for the thread that starts runs.
  const auto taken = std::count_if(table_->places.begin(), table_->places.end(), [](const auto& p) { return p.helper != 0; });
  if (!free || static_cast<size_t>(taken) + 1 >= table_->places.size()) return;
  membership.table = table_;
  table_->put(*free, gettid());
}

void HelperPinning::make_room() noexcept {
  const int here = sched_getcpu();
  for (Table::Place& occupied : table_->places) {
    if (occupied.processor != here) continue;
    if (occupied.taken.load(std::memory_order_relaxed) == 0) return;
    const MutexLock lock(table_->mutex);
    const pid_t helper = occupied.helper;
    Table::Place* free = table_->place_of(0);
    if (helper == 0 || !free) return;
    table_->put(occupied, 0);
    table_->put(*free, helper);
    return;
  }
}

std::vector<int> HelperPinning::helpers_per_processor() const {
  const MutexLock lock(table_->mutex);
  std::vector<int> result;
  for (const Table::Place& place : table_->places) result.push_back(place.helper != 0 ? 1 : 0);
  return result;
}

}  // namespace heddle
