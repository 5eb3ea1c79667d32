// The steady state allocates nothing: operator new of the whole program is counted.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "schedule/scheduler_support.h"
#include "schedule/tbb_executor.h"

namespace {
std::atomic<uint64_t> allocations{0};
void* counted(std::size_t bytes, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  void* p = nullptr;
  if (posix_memalign(&p, alignment < sizeof(void*) ? sizeof(void*) : alignment, bytes == 0 ? 1 : bytes) != 0) throw std::bad_alloc();
  return p;
}
// Not inlined: GCC would warn that memory from operator new must not be passed to free.
[[gnu::noinline]] void release(void* p) {
  std::free(p);
}
}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new[](std::size_t bytes) {
  return counted(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
// Sanitizers replace these too: one half of a pair alone would be a mismatch.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return std::malloc(bytes);
}
void operator delete(void* p, const std::nothrow_t&) noexcept {
  release(p);
}
void operator delete[](void* p, const std::nothrow_t&) noexcept {
  release(p);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* p) noexcept {
  release(p);
}
void operator delete[](void* p) noexcept {
  release(p);
}
void operator delete(void* p, std::size_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::size_t) noexcept {
  release(p);
}
void operator delete(void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::align_val_t) noexcept {
  release(p);
}
void operator delete(void* p, std::size_t, std::align_val_t) noexcept {
  release(p);
}
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept {
  release(p);
}

namespace heddle {
namespace {

using testing::TestNet;
using testing::ThreadExecutor;

uint64_t allocations_in_steady_state(Scheduler& scheduler, const TestNet& net) {
  for (int run = 0; run < 100; ++run) {
    RunControl control;
    scheduler.run(net.steps(), control);
  }
  const uint64_t before = allocations;
  for (int run = 0; run < 1000; ++run) {
    RunControl control;
    scheduler.run(net.steps(), control);
  }
  return allocations - before;
}

TEST(SchedulerAllocation, NoneInSteadyState) {
  TestNet net;
  uint64_t value = 0;
  std::vector<uint32_t> before;
  for (uint32_t i = 0; i < 100; ++i) {
    std::vector<uint32_t> predecessors;
    if (i >= 4) predecessors = {i - 4, i - 1 - i % 3};
    net.add(
        predecessors, [](int64_t, int64_t) { return testing::burn(3000), HEDDLE_OK; }, i % 10 == 0 ? 8 : 1);
  }
  net.add({99}, [&](int64_t, int64_t) { return ++value, HEDDLE_OK; });
  net.build();
  ThreadExecutor threads(3);
  TbbExecutor tbb({2, true});
  const uint64_t counted_before = allocations;
  Scheduler serial(net.graph(), nullptr, {});
  Scheduler parallel(net.graph(), &threads, testing::parallel(3));
  Scheduler automatic(net.graph(), &tbb, {});
  EXPECT_GT(allocations, counted_before) << "the counter does not count";
  EXPECT_EQ(allocations_in_steady_state(serial, net), 0u);
  EXPECT_EQ(allocations_in_steady_state(parallel, net), 0u);
  EXPECT_EQ(allocations_in_steady_state(automatic, net), 0u);
  EXPECT_EQ(value, 3300u);
}

}  // namespace
}  // namespace heddle
