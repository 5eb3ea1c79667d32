// DeviceWorker: enqueues the work of one context on its streams: steps, copies, the run's state, and waits for streams of the caller.
//
// Part of a DeviceRun. Threads: as for DeviceStreams. Allocates nothing, except where wait_for_callers() adopts a stream.
#pragma once

#include <cstdint>
#include <span>

#include "context/run_variables.h"
#include "heddle/abi.h"
#include "heddle/caller_stream.h"
#include "heddle/status.h"
#include "run/device/device_streams.h"
#include "run/device/stream_answers.h"

namespace heddle {

class DeviceWorker {
 public:
  // `streams` and `answers` must outlive it.
  DeviceWorker(DeviceStreams& streams, StreamAnswers& answers) : plan_(streams.plan()), streams_(streams), answers_(answers) {}
  DeviceWorker(const DeviceWorker&) = delete;
  DeviceWorker& operator=(const DeviceWorker&) = delete;

  // After DeviceRun::begin(): makes all work of the run wait for the work that these streams of the caller have been given so far. Errors:
  // invalid_argument (no such device in the plan), device_failed.
  Status wait_for_callers(std::span<const CallerStream> streams);
  // Enqueues copies of the run's state to where steps on streams read it; `state` must not change until the run is over. The step is copied
  // from the variable where that device counts it. Call it after DeviceRun::begin(). Errors: device_failed; then the caller drains the
  // streams and runs no step.
  Status send_state(const heddle_run_state& state, const RunVariables& variables);

  // The kernel that the step runs: as planned, or as a late step has found out. Copies use none of it.
  struct StepKernel {
    const heddle_kernel* kernel = nullptr;
    int64_t tiles = 0;
    int64_t scratch_bytes = 0;
    int64_t thread_scratch_at = 0;  // for a launch: the offset of the thread scratch in its scratch
  };
  StepKernel planned_kernel(uint32_t step) const;
  // Enqueues a kernel or copy step: waits for events, does the work, records an event. In an observed run it also waits until the work is
  // done, or until the run is requested to stop and the work has not completed in time. The text of a failure is left with `context`.
  // `fenced`: StreamAnswers::expect_fence() was called for the step.
  heddle_status enqueue(uint32_t step, const heddle_run_context* context, const StepKernel& kernel, bool fenced);
  // For a step that another one launches: makes its stream wait for what comes before it.
  heddle_status take_place(uint32_t step, const heddle_run_context* context);
  // Enqueues the steps of a group, `step` the one that launches them; `parts`: their contexts, in the order of DeviceWork::group. `fenced`:
  // expect_fence() was called for each that has a fence.
  heddle_status enqueue_group(uint32_t step, std::span<const heddle_run_context* const> parts, bool fenced);
  // Enqueues a copy on the step's stream, while its kernel runs.
  heddle_status move(uint32_t step, int32_t kind, void* destination, const void* source, uint64_t bytes, const heddle_call* call);
  // [after enqueue(step)] Copies to the host and waits for it, until the run is requested to stop. A failure is that of the step or of one
  // before it on its stream: StreamAnswers::drain() reports which.
  heddle_status fetch(uint32_t step, void* destination, const void* source, uint64_t bytes, const heddle_call* call);
  // Enqueues a copy of a result that does not lie where it is wanted, on the first stream of the device and after its work.
  Status copy_after(uint8_t device, void* destination, const void* source, int64_t bytes);

 private:
  heddle_status work(uint32_t step, const StepKernel& kernel, const heddle_run_context* context, const heddle_work& before,
                     const heddle_work& after);
  heddle_status copy(uint32_t step, const heddle_run_context& context, const heddle_work& before, heddle_work whole);
  heddle_status commit(uint32_t step, const heddle_run_context& context, const heddle_work& before, const heddle_work& after);
  heddle_status report(uint32_t step, const heddle_run_context& context, heddle_work whole);
  heddle_status copy_extent(uint32_t step, const heddle_run_context& context, heddle_work before);
  heddle_status launch(uint32_t step, const StepKernel& kernel, const heddle_run_context& context, heddle_work whole);
  heddle_launch launch_of(uint32_t step, const StepKernel& kernel, const heddle_run_context& context) const;
  heddle_status launch_group(std::span<const uint32_t> group, std::span<const heddle_run_context* const> parts, bool fenced,
                             const heddle_call* call);
  heddle_status run_group(std::span<const uint32_t> group, std::span<const heddle_run_context* const> parts, bool fenced);
  heddle_work work_before(uint32_t step) const;
  heddle_work work_after(uint32_t step, bool fenced);
  heddle_status send_extents(uint32_t step, const heddle_work& after, const heddle_call* call);
  Status send_state_to(uint32_t device, uint32_t stream, const heddle_run_state& state, const void* counter);
  uint32_t guard_after(uint32_t device, const heddle_run_context& context) const;

  const Plan& plan_;
  DeviceStreams& streams_;
  StreamAnswers& answers_;
};

}  // namespace heddle
