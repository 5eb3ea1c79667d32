// DeviceRun: what one context does on devices: what its steps enqueue on the streams of the workspace that it works in.
//
// Belongs to one Execution. Streams may be given work by several threads at once, each stream by one after the other, which the plan's
// edges see to. Nothing is allocated after create, but for the first run behind a stream of the caller's.
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
  // `plan` outlives it. Errors: out_of_memory, device_failed.
  static Result<std::unique_ptr<DeviceRun>> create(const Plan& plan);
  ~DeviceRun();

  // To the streams and events of a workspace that has reserved for the plan, and where the context's memory is now.
  void follow(const Workspace& workspace, const ContextMemory& memory);
  // Of a subnet of step `step` on a device, the `subnet`-th of it: to that step's stream, on which it is alone as long as the step is
  // enqueued. What is enqueued counts as the step's.
  void follow(const DeviceRun& outer, uint32_t step, uint32_t subnet, const ContextMemory& memory);
  void* stream(const DeviceWork& work) const { return sides_[work.device - 1u].streams[work.stream]; }
  // Where steps of that stream that draw random numbers find what they depend on, in the device's memory.
  const heddle_run_state* run_state(const DeviceWork& work) const { return sides_[work.device - 1u].state_of(work.stream); }

  // Errors: device_lost.
  Status usable() const;
  // Of values on `Plan::devices[device - 1]`, by slot, in its memory; null: it has none.
  int64_t* extents_on(uint8_t device) const { return static_cast<int64_t*>(sides_[device - 1u].extents.get()); }

  // Before a run. `observed`: each step waits until its work is done, or until `stops(user)`.
  void begin(bool observed, bool (*stops)(void* user), void* user);
  // Behind begin(): all that is enqueued waits for what those streams of the caller's were given before. Errors: invalid_argument (no such
  // device in the plan), device_failed.
  Status follow_callers(std::span<const CallerStream> streams);
  // Behind begin(): enqueues copies of the run's state to where steps on streams read it; `state` stays as it is until the run is over. The
  // step comes from the variable where that device counts it. Errors: device_failed; then the run is to be drained and not begun.
  Status send_state(const heddle_run_state& state, const RunVariables& variables);
  // What is called once when a stream has come past a step, or has failed before.
  struct Fence {
    void (*passed)(void* user, heddle_status failed) = nullptr;
    void* user = nullptr;
  };
  // Before enqueue() of a step that has a fence; not while observed.
  void await(uint32_t step, const Fence& fence);
  // Behind enqueue() of such a step, if that failed: `passed` is not called any more. False: it has been, as look() may find the stream to
  // have failed at any time.
  bool withdraw(uint32_t step);
  // What the step runs: as its plan says, or a late step has found out. Nothing of it matters to a copy.
  struct StepKernel {
    const heddle_kernel* kernel = nullptr;
    int64_t tiles = 0;
    int64_t scratch_bytes = 0;
    int64_t thread_scratch_at = 0;  // of a launch: where in its scratch that of its thread begins
  };
  StepKernel planned_kernel(uint32_t step) const;
  // A kernel or copy step: waits for events, works, records one. The text of a failure is left with `context`. `fenced`: the step is
  // awaited.
  heddle_status enqueue(uint32_t step, const heddle_run_context* context, const StepKernel& kernel, bool fenced);
  bool observed() const { return observed_; }
  // Within a kernel of such a step: on its stream.
  heddle_status move(uint32_t step, int32_t kind, void* destination, const void* source, uint64_t bytes, const heddle_call* call);
  // [behind enqueue(step)] Copies to the host and waits for it, as long as the run is not to end. A failure is that of the step or of one
  // before it on its stream: drain() says which.
  heddle_status fetch(uint32_t step, void* destination, const void* source, uint64_t bytes, const heddle_call* call);
  // Of results that do not lie where they are wanted, behind all that was enqueued.
  Status copy_behind(uint8_t device, void* destination, const void* source, int64_t bytes);
  // Fences whose streams have failed and forgot to say so are told. By the thread that runs, while it waits.
  void look();
  // Whether there may be such.
  bool must_look() const;

  struct Failure {
    uint32_t step = 0;          // whose work failed, or the first whose work may have
    bool of_the_outer = false;  // of a subnet: another step of the net around it
    heddle_status status = HEDDLE_OK;
    std::string text;
  };
  // Waits until nothing is in flight, at most `ns`, and makes every stream that has answered usable again. What failed, by stream; where a
  // device does not know what it was, one for all of its streams: those that wait for one that has failed fail too.
  std::vector<Failure> drain(double ns);
  // [any thread] Nothing comes of what is in flight: streams that can be told end soon, as cancelled. Behind end_aborts(), and before the
  // first run, it does nothing: the streams may be another context's by then. Who calls it has set the run's stop word before.
  void abort(bool all);
  // From here on abort() comes too late: before the tail that of those who spare it (`all` false), behind the last step every one. What is
  // under way has been told when this returns. True: there was one in this run.
  bool end_aborts(bool all);
  // After drain(): null when every stream has answered.
  const std::shared_ptr<Unanswered>& unanswered() const { return unanswered_; }

 private:
  // Whether a stream has come to its end: it is asked with a notify, which calls back when it has.
  struct Answer {
    DeviceRun* run = nullptr;
    void* stream = nullptr;
    // The stream has been given work since it was last known to be done. Set by those who enqueue, while look() reads it.
    std::atomic<bool> worked{false};
    bool asked = false;                // of the thread that runs
    bool given = false;                // under mutex_
    heddle_status failed = HEDDLE_OK;  // likewise
  };
  struct Side {
    Device* device = nullptr;    // the plan's
    std::vector<void*> streams;  // the workspace's
    std::byte* arena = nullptr;
    std::vector<std::atomic<uint32_t>> passed;  // by stream: the last fence that everything before went well, + 1
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
  // A step's fence while it is awaited: told by the device's callback, or by look(), whichever comes first.
  struct Awaited {
    DeviceRun* run = nullptr;
    uint32_t step = 0;  // the fence
    Fence fence;
    std::atomic<bool> open{false};
  };
  // A stream of the caller's, kept for his next run.
  struct Adopted {
    void* native = nullptr;
    uint8_t device = 1;
    DeviceStream stream;
    DeviceEvent reached;
  };

  enum class Aborts : uint8_t { none, of_all, any };  // which are heeded

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
  // Whether what this thread is about to enqueue there enters the device (HEDDLE_WORK_ENTERS).
  bool enters(const Device& device) const;
  static void forget_entered();
  heddle_status enqueue(Device& device, void* stream, heddle_work work, uint64_t label, const heddle_call* call);
  // True when `given` is within `ns`, asked under the lock.
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
  std::vector<void*> waits_;          // of all steps, one behind the other
  std::vector<uint32_t> wait_begin_;  // by step: where its own begin
  std::vector<void*> records_;        // by step; null: none
  std::vector<Awaited> awaited_;      // by step with a fence; the others' are not used
  std::vector<Adopted> adopted_;
  std::byte* staging_ = nullptr;
  uint64_t outer_label_ = UINT64_MAX;  // of a subnet: that of the step around it
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
