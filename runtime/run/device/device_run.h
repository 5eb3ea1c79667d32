// DeviceRun: the work of one context on devices: its steps enqueue it on the streams of the workspace that the context works in.
//
// Belongs to one Execution. Threads: several threads may enqueue at once, but on each stream only one at a time, which the plan's edges
// ensure. abort() may be called by any thread; look() and drain() by the thread that runs. Device callbacks may come on any thread. Nothing
// is allocated after create(), except by the first run that follows a stream of the caller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "context/run_variables.h"
#include "device/device.h"
#include "device/unanswered.h"
#include "heddle/caller_stream.h"
#include "heddle/status.h"
#include "memory/workspace.h"

namespace heddle {

class DeviceRun {
 public:
  // `plan` must outlive it. Errors: out_of_memory, device_failed.
  static Result<std::unique_ptr<DeviceRun>> create(const Plan& plan);
  ~DeviceRun();

  // Moves to the streams and events of a workspace that has reserved for the plan, and to the context's current memory.
  void follow(const Workspace& workspace, const ContextMemory& memory);
  // For the `subnet`-th subnet of step `step` on a device: moves to that step's stream, which nothing else uses while the step is being
  // enqueued. The work of the subnet counts as the step's.
  void follow(const DeviceRun& outer, uint32_t step, uint32_t subnet, const ContextMemory& memory);
  void* stream(const DeviceWork& work) const { return sides_[work.device - 1u].streams[work.stream]; }
  // The run state that steps of that stream draw random numbers from, in the device's memory.
  const heddle_run_state* run_state(const DeviceWork& work) const { return sides_[work.device - 1u].state_of(work.stream); }

  // Errors: device_lost.
  Status usable() const;
  // The extents of values on `Plan::devices[device - 1]`, by slot, in its memory; null: it has none.
  int64_t* extents_on(uint8_t device) const { return static_cast<int64_t*>(sides_[device - 1u].extents.get()); }

  // Call it before each run. `observed`: each step waits until its work is done, or until `stops(user)` is true and the work has not
  // completed in time.
  void begin(bool observed, bool (*stops)(void* user), void* user);
  // After begin(): makes all work of the run wait for the work that these streams of the caller have been given so far. Errors:
  // invalid_argument (no such device in the plan), device_failed.
  Status follow_callers(std::span<const CallerStream> streams);
  // Returns the error for a stream of a device that the plan does not use.
  static Status stream_without_work(const CallerStream& option);
  // After begin(): enqueues copies of the run's state to where steps on streams read it; `state` must not change until the run is over. The
  // step is copied from the variable where that device counts it. Errors: device_failed; then the run must be drained and not begun.
  Status send_state(const heddle_run_state& state, const RunVariables& variables);
  // A callback that is called once, when a stream has completed a step or has failed before it.
  struct Fence {
    void (*passed)(void* user, heddle_status failed) = nullptr;
    void* user = nullptr;
  };
  // Registers the callback of a step that has a fence. Call it before enqueue() of the step; not in a traced run.
  void await(uint32_t step, const Fence& fence);
  // After a failed enqueue() of such a step: unregisters the callback. False: it has been called already, since look() may find at any time
  // that the stream has failed.
  bool withdraw(uint32_t step);
  // The kernel that the step runs: as planned, or as a late step has found out. Copies use none of it.
  struct StepKernel {
    const heddle_kernel* kernel = nullptr;
    int64_t tiles = 0;
    int64_t scratch_bytes = 0;
    int64_t thread_scratch_at = 0;  // for a launch: the offset of the thread scratch in its scratch
  };
  StepKernel planned_kernel(uint32_t step) const;
  // Enqueues a kernel or copy step: waits for events, does the work, records an event. The text of a failure is left with `context`.
  // `fenced`: await() was called for the step.
  heddle_status enqueue(uint32_t step, const heddle_run_context* context, const StepKernel& kernel, bool fenced);
  bool observed() const { return observed_; }
  // Enqueues a copy on the step's stream, while its kernel runs.
  heddle_status move(uint32_t step, int32_t kind, void* destination, const void* source, uint64_t bytes, const heddle_call* call);
  // [after enqueue(step)] Copies to the host and waits for it, until the run is requested to stop. A failure is that of the step or of one
  // before it on its stream: drain() reports which.
  heddle_status fetch(uint32_t step, void* destination, const void* source, uint64_t bytes, const heddle_call* call);
  // Enqueues a copy of a result that does not lie where it is wanted, on the first stream of the device.
  Status copy_behind(uint8_t device, void* destination, const void* source, int64_t bytes);
  // Fails the fences of streams that have failed without calling back. Called by the thread that runs, while it waits.
  void look();
  // Whether a device may drop callbacks, so that look() is needed.
  bool must_look() const;

  struct Failure {
    uint32_t step = 0;          // the step whose work failed, or the first whose work may have failed
    bool of_the_outer = false;  // for a subnet: the failed step is another one of the outer net
    heddle_status status = HEDDLE_OK;
    std::string text;
  };
  // Waits at most `ns` until nothing is in flight, and makes every stream that has completed its work usable again. Returns the failures by
  // stream. Where a device does not know what failed there is one failure for all of its streams, since streams that wait for a failed
  // one fail too.
  std::vector<Failure> drain(double ns);
  // [any thread] Aborts the work in flight, on devices that support it: streams end soon, as cancelled. Does nothing once disabled by
  // end_aborts() and before the first run, when another context may use the streams. REQUIRES: RunControl::stop is set.
  void abort(bool all);
  // Disables abort(). Call it with `all` false before the update phase, which disables abort(false) alone, and with `all` true after the
  // last step. Blocks until concurrent calls of abort() have returned. True: an abort() was not ignored in this run.
  bool end_aborts(bool all);
  // The outstanding work after drain(); null if every stream has completed.
  const std::shared_ptr<Unanswered>& unanswered() const { return unanswered_; }

 private:
  // Whether a stream has completed its work: a callback is enqueued, and called when it has.
  struct Answer {
    DeviceRun* run = nullptr;
    void* stream = nullptr;
    // The stream has been given work since it was last known to be done. Set by threads that enqueue, while look() reads it.
    std::atomic<bool> worked{false};
    bool asked = false;                // a callback is enqueued; used by the thread that runs
    bool given = false;                // the stream has completed; under mutex_
    heddle_status failed = HEDDLE_OK;  // likewise
  };
  struct Side {
    Device* device = nullptr;    // the plan's
    std::vector<void*> streams;  // the workspace's
    std::byte* arena = nullptr;
    std::vector<std::atomic<uint32_t>> passed;  // by stream: 1 + the last fence that succeeded
    std::vector<Answer> answers;                // by stream
    std::vector<int32_t> first_draw;            // by stream: its first step that draws random numbers; -1: none
    DeviceMemory extents;                       // by slot, where a value on it has one
    DeviceMemory states;                        // by stream, if any draws

    heddle_run_state* state_of(uint32_t stream) const {
      return reinterpret_cast<heddle_run_state*>(static_cast<std::byte*>(states.get()) + stream * state_stride);
    }
  };
  static constexpr size_t state_stride = 64;
  Status make_states(const Plan& plan);
  Status make_extents(const Plan& plan);
  heddle_status copy_extent(const DeviceWork& work, const heddle_run_context& context, heddle_work before, uint64_t label);
  // A step's fence while it is awaited: completed by the device's callback or by look(), whichever comes first.
  struct Awaited {
    DeviceRun* run = nullptr;
    uint32_t step = 0;  // the fence
    Fence fence;
    std::atomic<bool> open{false};
  };
  // A stream of the caller, kept for the caller's next run.
  struct Adopted {
    void* native = nullptr;
    uint8_t device = 1;
    DeviceStream stream;
    DeviceEvent reached;
  };

  enum class Aborts : uint8_t { none, of_all, any };  // which calls of abort() take effect

  explicit DeviceRun(const Plan& plan) : plan_(plan) {}
  uint64_t label_of(uint32_t step) const;
  Failure labelled(uint64_t label, heddle_status status, std::string text) const;
  Result<Adopted*> adopt(const CallerStream& option);
  void tell(Awaited& awaited, heddle_status failed);
  void tell_fences(uint32_t side, uint32_t stream, heddle_status status);
  static void fence_reached(void* awaited, heddle_status failed, const char* text, size_t length);
  void ask(Side& side, uint32_t stream);
  void look_at_answers();
  bool all_given();
  // Whether the work that this thread is about to enqueue enters the device (HEDDLE_WORK_ENTERS).
  bool enters(const Device& device) const;
  static void forget_entered();
  heddle_status enqueue(Device& device, void* stream, heddle_work work, uint64_t label, const heddle_call* call);
  // Waits at most `ns` for `given()`, which is called under the lock; returns whether it was true in time.
  template <class Given>
  bool wait_for(double ns, const Given& given);
  double answer_ns(uint32_t step) const;
  heddle_status wait_for_answer(Side& side, uint32_t stream, double answer_ns);
  void note_unanswered();
  std::string first_unanswered() const;
  std::vector<uint32_t> steps_behind(const Side& side, uint32_t device, uint32_t stream) const;
  static void answer(void* user, heddle_status failed, const char* text, size_t length);
  Failure blame(std::vector<uint32_t> suspects, Failure failure) const;
  void stand_in(const ContextMemory& memory);
  uint32_t guard_behind(const Side& side, const PlanDevice& device, const heddle_run_context& context) const;
  heddle_status work(uint32_t step, const StepKernel& kernel, const heddle_run_context* context, heddle_work before, heddle_work behind);
  heddle_status send_extents(uint32_t step, heddle_work behind, const heddle_call* call);

  const Plan& plan_;
  std::vector<Side> sides_;
  std::vector<void*> waits_;          // of all steps, one after the other
  std::vector<uint32_t> wait_begin_;  // by step: where its waits begin
  std::vector<void*> records_;        // by step; null: none
  std::vector<Awaited> awaited_;      // by step; used for steps with a fence
  std::vector<Adopted> adopted_;
  std::byte* staging_ = nullptr;
  uint64_t outer_label_ = UINT64_MAX;  // for a subnet: the label of the outer step
  uint32_t subnet_ = 0;
  bool observed_ = false;
  std::atomic<Aborts> aborts_{Aborts::none};
  std::atomic<uint32_t> aborting_{0};  // calls of abort() under way
  std::atomic<bool> aborted_{false};
  bool (*stops_)(void* user) = nullptr;
  void* user_ = nullptr;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::shared_ptr<Unanswered> unanswered_;  // written under mutex_, by the thread that runs
};

}  // namespace heddle
