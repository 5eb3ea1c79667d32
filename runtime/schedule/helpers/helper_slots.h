// HelperSlots: the places for helpers of one scheduler: which of them are idle, submitted, or running. Robust against any executor: tasks
// may never run, run late, or run after their scheduler is destroyed.
//
// A slot goes idle -> submitted -> running -> idle. The slot's owner is kept alive from submit until the task has returned, so a task
// that comes late finds a host without work, and no thread ever waits for one that has not come.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/executor.h"

namespace heddle {

class HelperHost {
 public:
  // [helper] Works as worker `worker` (1 ..) until there is nothing to do.
  virtual void help(uint32_t worker) noexcept = 0;
  // [helper] Whether there is work that a helper could take.
  virtual bool wanted() const noexcept = 0;
  // Returns an owner of the host and with it of the slots. The pointer identifies the host's runs (worker.h).
  virtual std::shared_ptr<void> keep_alive() noexcept = 0;

 protected:
  virtual ~HelperHost() = default;
};

class HelperSlots {
 public:
  HelperSlots(HelperHost& host, Executor* executor, uint32_t count);
  uint32_t count() const { return static_cast<uint32_t>(slots_.size()); }
  // [any thread] Returns the number of idle slots; approximate.
  uint32_t idle() const noexcept { return idle_.load(std::memory_order_relaxed); }
  // Returns the number of helpers that were requested and have not come yet.
  uint32_t coming() const noexcept { return coming_.load(std::memory_order_relaxed); }
  // [any thread that holds work] Requests up to `wanted` more helpers from the executor.
  void call(uint32_t wanted) noexcept;
  Executor* executor() const { return executor_; }

 private:
  enum : uint32_t { slot_idle, slot_submitted, slot_running };
  struct alignas(64) Slot final : HelperTask {
    HelperSlots* slots = nullptr;
    uint32_t worker = 0;
    std::atomic<uint32_t> state{slot_idle};
    std::shared_ptr<void> alive;  // while submitted: written before, taken after the state changes
    void execute() noexcept override { slots->execute(*this); }
  };
  void execute(Slot& slot) noexcept;

  HelperHost& host_;
  Executor* executor_;
  std::vector<Slot> slots_;
  alignas(64) std::atomic<uint32_t> idle_{0};
  std::atomic<uint32_t> coming_{0};
};

}  // namespace heddle
