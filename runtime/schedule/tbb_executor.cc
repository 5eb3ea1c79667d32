#include "schedule/tbb_executor.h"

#include <fmt/format.h>
#include <pthread.h>
#include <sched.h>
#include <tbb/global_control.h>
#include <tbb/task_arena.h>
#include <tbb/task_scheduler_observer.h>

#include <algorithm>
#include <atomic>
#include <system_error>
#include <vector>

#include "base/threads/mutex.h"
#include "heddle/limits.h"
#include "schedule/helpers/helper_pinning.h"
#include "schedule/helpers/processors.h"

namespace heddle {
namespace {

// Returns the width of the arena. One wider than the process's limit would get no more threads, only a warning from TBB on stderr.
int arena_width(int wanted) {
  const auto limit = static_cast<int>(tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism));
  return std::max(1, std::min(wanted > 0 ? wanted : std::min(default_concurrency(), max_threads), limit));
}

// Pins each worker when it enters the arena. Workers stay pinned when they leave: they sleep outside.
class PinningObserver final : public tbb::task_scheduler_observer {
 public:
  explicit PinningObserver(tbb::task_arena& arena) : tbb::task_scheduler_observer(arena), pinning_(allowed_processors()) { observe(true); }
  ~PinningObserver() override { observe(false); }
  void on_scheduler_entry(bool is_worker) override {
    if (is_worker) pinning_.enter();
  }
  HelperPinning& pinning() { return pinning_; }

 private:
  HelperPinning pinning_;
};

void* wait_for(void* gate) {
  const MutexLock pass(*static_cast<Mutex*>(gate));
  return nullptr;
}

}  // namespace

Status check_threads(int count) {
  constexpr size_t stack_bytes = size_t{4} << 20;  // like those of oneTBB's workers
  std::vector<pthread_t> threads;
  threads.reserve(static_cast<size_t>(count));  // nothing is thrown while threads wait at the gate
  Mutex gate;                                   // closed until all threads exist at once
  int error = 0;
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstacksize(&attributes, stack_bytes);
  {
    const MutexLock closed(gate);
    for (int i = 0; i < count && error == 0; ++i) {
      pthread_t thread = {};
      error = ::pthread_create(&thread, &attributes, wait_for, &gate);
      if (error == 0) threads.push_back(thread);
    }
  }
  for (const pthread_t thread : threads) ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
  if (error == 0) return {};
  return {Code::out_of_memory,
          fmt::format("the system gives this process {} of the {} threads that are to help ({})", threads.size(), count,
                      std::generic_category().message(error)),
          "use 1 thread, or raise the limit of processes or of memory"};
}

struct TbbExecutor::Arena {
  explicit Arena(const TbbExecutorOptions& options) : arena(arena_width(options.concurrency)) {
    arena.initialize();
    if (options.pin_helpers) observer = std::make_unique<PinningObserver>(arena);
  }
  tbb::task_arena arena;
  std::unique_ptr<PinningObserver> observer;
  std::atomic<uint32_t> tasks{0};  // submitted and not returned
};

namespace {
thread_local uint32_t inside_tasks = 0;  // how many tasks of such executors this thread is in
}

TbbExecutor::TbbExecutor(const TbbExecutorOptions& options) : arena_(std::make_shared<Arena>(options)) {}

TbbExecutor::~TbbExecutor() {
  // A callback may destroy the last handle of a runtime, on a thread that queued tasks may need. No wait: the tasks keep the arena alive.
  if (inside_tasks != 0) return;
  // oneTBB runs enqueued tasks even where it may use no worker otherwise.
  while (arena_->tasks.load(std::memory_order_acquire) != 0) sched_yield();
}

int TbbExecutor::concurrency() const noexcept {
  return arena_->arena.max_concurrency();
}

void TbbExecutor::submit(HelperTask& task) noexcept {
  arena_->tasks.fetch_add(1, std::memory_order_relaxed);
  arena_->arena.enqueue([arena = arena_, &task] {
    ++inside_tasks;
    task.execute();
    --inside_tasks;
    arena->tasks.fetch_sub(1, std::memory_order_release);
  });
}

void TbbExecutor::run_begins() noexcept {
  if (arena_->observer) arena_->observer->pinning().make_room();
}

}  // namespace heddle
