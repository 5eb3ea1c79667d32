#include "schedule/worker.h"

#include <utility>

namespace heddle {
namespace {
thread_local uint32_t current_worker = 0;
thread_local const void* current_run = nullptr;
thread_local uint64_t stays = 0;
thread_local void (*leaving)() = nullptr;
}  // namespace

uint32_t worker_index() noexcept {
  return current_worker;
}
uint32_t worker_index(const void* of) noexcept {
  return current_run == of ? current_worker : no_worker;
}
uint64_t worker_stay() noexcept {
  return current_run ? stays : 0;
}

void when_thread_leaves_runs(void (*function)()) noexcept {
  if (current_run) leaving = function;
}

WorkerScope::WorkerScope(uint32_t index, const void* of) noexcept : index_before_(current_worker), of_before_(current_run) {
  current_worker = index;
  current_run = of;
  ++stays;
}
WorkerScope::~WorkerScope() {
  current_worker = index_before_;
  current_run = of_before_;
  ++stays;
  if (!current_run && leaving) std::exchange(leaving, nullptr)();
}

}  // namespace heddle
