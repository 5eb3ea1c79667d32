// One run of a kernel on the calling thread: the host functions that it calls.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include "base/threads/mutex.h"
#include "net/typed_net.h"
#include "operator_runner/call_host.h"
#include "operator_runner/call_memory.h"
#include "plugin/host.h"

namespace heddle {

class RunCall final : public HostCall {
 public:
  // `types`: of the outputs, as they were inferred.
  // `attributes`: of the operator.
  RunCall(std::span<heddle_tensor* const> outputs, std::span<const TensorType> types, const std::vector<Attribute>& attributes,
          bool runs_subnets, int64_t limit_bytes, const CallConditions& conditions, CallHost* host)
      : dynamic_outputs(outputs.size()),
        outputs_(outputs),
        types_(types),
        attributes_(attributes),
        runs_subnets_(runs_subnets),
        limit_bytes_(limit_bytes),
        conditions_(conditions),
        host_(host) {}
  void* thread_scratch() const noexcept override { return std::this_thread::get_id() == thread_ ? thread_scratch_ : nullptr; }
  uint32_t thread_index() const noexcept override { return std::this_thread::get_id() == thread_ ? index_ : HEDDLE_NO_THREAD; }
  // Makes the calling thread the one that runs from here on, with this index.
  void set_thread(uint32_t index, void* scratch) {
    thread_ = std::this_thread::get_id();
    index_ = index;
    thread_scratch_ = scratch;
  }
  heddle_status complete(heddle_status status, std::string_view text) noexcept override;
  heddle_status move(uint32_t flags, void* destination, const void* source, uint64_t bytes) noexcept override;
  void* allocate_output(uint32_t output, const int64_t* dims, int32_t rank) noexcept override;
  heddle_status run_subnet(const heddle_subnet* subnet, uint64_t trip, Views inputs,
                           std::span<heddle_tensor* const> outputs) noexcept override;
  // Waits for the completion of a run() that only started its work.
  heddle_status wait();
  // For an asynchronous kernel, before its run(): the token of the call, whose completions are counted.
  const heddle_call* token();
  // The mistake in the kernel's completions; null: there is none.
  const char* wrong_completion() const;
  ~RunCall() {
    if (slot_) slot_->give_back();
  }

  std::vector<std::optional<CallBytes>> dynamic_outputs;

 private:
  Result<void*> allocate(uint32_t output, const int64_t* dims, int32_t rank);

  const std::span<heddle_tensor* const> outputs_;
  const std::span<const TensorType> types_;
  const std::vector<Attribute>& attributes_;
  const bool runs_subnets_;
  const int64_t limit_bytes_;
  const CallConditions& conditions_;
  CallHost* const host_;
  uint32_t index_ = 0;
  void* thread_scratch_ = nullptr;
  std::thread::id thread_ = std::this_thread::get_id();
  Condition completed_;
  TokenSlot* slot_ = nullptr;  // for an asynchronous kernel
  std::atomic<bool> completed_untold_{false};
  bool complete_ HEDDLE_GUARDED_BY(mutex_) = false;
  heddle_status status_ HEDDLE_GUARDED_BY(mutex_) = HEDDLE_OK;
};

}  // namespace heddle
