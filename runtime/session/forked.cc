#include "session/forked.h"

#include <pthread.h>

#include <atomic>

namespace heddle {
namespace {

std::atomic<uint32_t> generation{0};

}  // namespace

uint32_t fork_generation() {
  static const int registered = ::pthread_atfork(nullptr, nullptr, [] { generation.fetch_add(1, std::memory_order_relaxed); });
  static_cast<void>(registered);
  return generation.load(std::memory_order_relaxed);
}

Status MadeInThisProcess::check() const {
  if (holds()) return {};
  return {Code::forked, "this process was forked from the one that made the runtime, whose threads and locks are not here",
          "create the runtime after fork(), or leave the run to the parent"};
}

}  // namespace heddle
