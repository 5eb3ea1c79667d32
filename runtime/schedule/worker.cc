#include "schedule/worker.h"

namespace heddle {
namespace {
thread_local uint32_t current_worker = 0;
thread_local const void* current_run = nullptr;
}  // namespace

uint32_t worker_index() noexcept {
  return current_worker;
}
uint32_t worker_index(const void* of) noexcept {
  return current_run == of ? current_worker : no_worker;
}

WorkerScope::WorkerScope(uint32_t index, const void* of) noexcept : index_before_(current_worker), of_before_(current_run) {
  current_worker = index;
  current_run = of;
}
WorkerScope::~WorkerScope() {
  current_worker = index_before_;
  current_run = of_before_;
}

}  // namespace heddle
