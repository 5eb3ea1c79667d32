// DeviceRun: what one run context has on devices: its streams and events, where its arenas are, and what its steps enqueue there.
//
// Belongs to one Execution. Streams may be given work by several threads at once, each stream by one after the other, which the plan's
// edges see to. Nothing is allocated after create.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "device/device.h"
#include "heddle/status.h"
#include "run/workspace.h"

namespace heddle {

class DeviceRun {
 public:
  // `plan` outlives it. Errors: out_of_memory, device_failed.
  static Result<std::unique_ptr<DeviceRun>> create(const Plan& plan);
  ~DeviceRun();

  // `device` as in Placement, not the host.
  std::byte* arena(uint8_t device) const { return sides_[device - 1u].arena; }
  // The arenas are in `workspace`, which has reserved for the plan.
  void follow(const Workspace& workspace);
  void* stream(const DeviceWork& work) const { return sides_[work.device - 1u].streams[work.stream].get(); }

  // Before a run. `observed`: each step waits until its work is done.
  void begin(bool observed);
  // A kernel or copy step: waits for events, works, records one. The text of a failure is left with `context`.
  heddle_status enqueue(uint32_t step, const heddle_run_context* context);
  // Right behind enqueue, by the same thread, for a step with a fence: `callback(user, ...)` is called when the stream has come that far.
  // Not while observed.
  heddle_status notify(uint32_t step, const heddle_run_context* context, heddle_stream_callback callback, void* user);
  bool observed() const { return observed_; }
  // In the callback of a fence that did not fail.
  void passed(uint32_t fence);

  struct Failure {
    uint32_t step = 0;  // whose work failed, or the first whose work may have
    heddle_status status = HEDDLE_OK;
    std::string text;
  };
  // Waits until nothing is in flight and makes every stream usable again. What failed, by stream.
  std::vector<Failure> drain();

 private:
  struct Side {
    Device* device = nullptr;  // the plan's
    std::byte* arena = nullptr;
    std::vector<DeviceStream> streams;
    std::vector<DeviceEvent> events;
    std::vector<std::atomic<uint32_t>> passed;  // by stream: the last fence that everything before went well, + 1
  };
  explicit DeviceRun(const Plan& plan) : plan_(plan) {}
  Failure blame(Side& side, uint32_t device, uint32_t stream, heddle_status status, const char* text);
  heddle_status work(const DeviceWork& work, const PlanStep& step, const heddle_run_context* context, char* error);

  const Plan& plan_;
  std::vector<Side> sides_;
  bool observed_ = false;
};

}  // namespace heddle
