#include "schedule/worker.h"

namespace heddle {
namespace {
thread_local uint32_t current_worker = 0;
}

uint32_t worker_index() noexcept {
  return current_worker;
}

WorkerScope::WorkerScope(uint32_t index) noexcept : before_(current_worker) {
  current_worker = index;
}
WorkerScope::~WorkerScope() {
  current_worker = before_;
}

}  // namespace heddle
