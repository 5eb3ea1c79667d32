// StreamAnswers: what the streams of one context report: when a step's work is done, when a stream has completed all of its work, and which
// step has failed.
//
// Part of a DeviceRun. Threads: note_work(), expect_fence(), withdraw(), call_back() and wait_for_answer() are called by the thread that
// enqueues on the step's stream; abort() by any thread, also from inside callbacks; the others by the thread that runs. Device callbacks
// may come on any thread.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/threads/mutex.h"
#include "device/outstanding_work.h"
#include "run/device/device_streams.h"
#include "run/device/stream_state.h"
#include "run/left_work.h"

namespace heddle {

class StreamAnswers {
 public:
  // `streams` must outlive it.
  explicit StreamAnswers(const DeviceStreams& streams);
  StreamAnswers(const StreamAnswers&) = delete;
  StreamAnswers& operator=(const StreamAnswers&) = delete;

  // Call it before each run. `stops(user)`: whether the run was requested to stop, which limits how long steps wait for an answer.
  void begin(bool (*stops)(void* user), void* user);
  // Call it before work is enqueued on the stream: drain() waits for streams that have work.
  void note_work(uint32_t device, uint32_t stream) {
    StreamState& state = answers_[first_[device - 1u] + stream].state;
    if (state.state() == StreamState::State::idle) state.on_alone(StreamRules::Event::work);
  }

  // A callback that is called once, when a stream has completed a step or has failed before it.
  struct Fence {
    void (*passed)(void* user, heddle_status failed) = nullptr;
    void* user = nullptr;
  };
  // Registers the callback of a step that has a fence. Call it before the step is enqueued; not in an observed run.
  void expect_fence(uint32_t step, const Fence& fence);
  // After the step could not be enqueued: unregisters the callback. False: it has been called already, since look() may find at any time
  // that the stream has failed.
  bool withdraw(uint32_t step);
  // Makes `work` call back when it is done. REQUIRES: it is the last work of the step, for which expect_fence() was called.
  void call_back(uint32_t step, heddle_work& work) {
    work.callback = fence_reached;
    work.user = &awaited_[step];
  }
  // Fails the fences of streams that have failed without calling back. Called by the thread that runs, while it waits.
  void look();
  // Whether a device may drop callbacks, so that look() is needed.
  bool must_look() const;

  // False if the step, which is on a device, is known to have completed in this run.
  bool may_be_under_way(uint32_t step) const {
    const DeviceWork& work = *plan_.steps[step].on_device;
    return answers_[first_[work.device - 1u] + work.stream].passed.load() <= step;
  }

  // Waits until the step's stream has completed what it was given so far, and returns its status. HEDDLE_PENDING: the run was requested to
  // stop, and the stream did not complete in time.
  heddle_status wait_for_answer(uint32_t step);

  struct Failure {
    uint32_t step = 0;          // the step whose work failed, or the first whose work may have failed
    bool of_the_outer = false;  // for a subnet: the failed step is another one of the outer net
    heddle_status status = HEDDLE_OK;
    std::string text;
  };
  // Waits at most `ns` until nothing is in flight; then aborts what is, and waits a little more (answer_after_stop_ns). Makes every stream
  // that has completed its work usable again, and registers in `left` what has not. Returns the failures by stream. Where a device does not
  // know what failed there is one failure for all of its streams, since streams that wait for a failed one fail too. Throws
  // std::bad_alloc: see noted().
  std::vector<Failure> drain(double ns, const LeftWork& left);
  // Whether streams have to be drained before the next run: they have outstanding work, or have completed it since drain() looked.
  bool left_work() const {
    return std::any_of(answers_.begin(), answers_.end(), [](const Answer& answer) { return answer.state.was_asked(); });
  }
  // False if drain() had no memory to register what it has left.
  bool noted() const { return unanswered_ || !left_work(); }

  // [any thread] Aborts the work in flight, on devices that support it: streams end soon, as cancelled. Does nothing once disabled by
  // end_aborts() and before the first run, when another context may use the streams. Where the update phase joins on devices, its updates
  // are not made unless their commit has come before, whatever `all` says. REQUIRES: RunControl::stop is set.
  void abort(bool all);
  // Disables abort(). Call it with `all` false before the update phase, which disables abort(false) alone, and with `all` true after the
  // last step. Blocks until concurrent calls of abort() have returned. Returns true if an abort() took effect in this run.
  bool end_aborts(bool all);

 private:
  // The facts that are known of one stream.
  struct Answer {
    StreamAnswers* answers = nullptr;
    uint32_t device = 1, stream = 0;
    StreamState state;                 // becomes `answered` under mutex_
    heddle_status failed = HEDDLE_OK;  // valid once it has answered; written under mutex_
    std::atomic<uint32_t> passed{0};   // 1 + the last fence that succeeded
  };
  // A step's fence while it is awaited: completed by the device's callback or by look(), whichever comes first.
  struct Awaited {
    StreamAnswers* answers = nullptr;
    uint32_t step = 0;  // the fence
    Fence fence;
    std::atomic<bool> open{false};
  };
  // Which calls of abort() take effect.
  enum class Aborts : uint8_t {
    none,    // before the first run and after the last step
    of_all,  // abort(true): in the update phase
    any,     // from the begin of a run to the update phase
  };

  Device& device_of(const Answer& answer) const { return streams_.device(answer.device); }
  void* stream_of(const Answer& answer) const { return streams_.stream(answer.device, answer.stream); }
  Answer& answer_of(const DeviceWork& work) { return answers_[first_[work.device - 1u] + work.stream]; }
  std::span<Answer> answers_on(uint32_t device) { return {answers_.data() + first_[device - 1u], streams_.stream_count(device)}; }

  void complete(Awaited& awaited, heddle_status failed);
  void fail_fences(const Answer& of, heddle_status status);
  static void fence_reached(void* awaited, heddle_status failed, const char* text, size_t length);
  void ask(Answer& answer);
  static void answered(void* answer, heddle_status failed, const char* text, size_t length);
  void query_asked();
  // Waits at most `ns` for `done()`, which is called under the lock; returns whether it was true in time.
  template <class Done>
  bool wait_for(double ns, const Done& done);
  bool wait_for_stream(double ns, const Answer& answer);
  bool wait_for_all(double ns);
  void drain_device(uint32_t device, std::vector<Failure>& failures);
  Failure blame(std::vector<uint32_t> suspects, Failure failure) const;
  std::vector<uint32_t> steps_after(const Answer& answer) const;
  std::vector<uint32_t> steps_on(uint32_t device) const;
  void note_unanswered(const LeftWork& left);
  std::string first_unanswered() const;

  const DeviceStreams& streams_;
  const Plan& plan_;
  std::vector<Answer> answers_;   // of all streams, by device
  std::vector<uint32_t> first_;   // by device: where its streams begin
  std::vector<Awaited> awaited_;  // by step; used for steps with a fence
  bool (*stops_)(void* user) = nullptr;
  void* user_ = nullptr;
  std::atomic<Aborts> aborts_{Aborts::none};
  std::atomic<uint32_t> aborting_{0};       // calls of abort() under way
  std::atomic<bool> aborted_{false};        // a call of abort() has taken effect in this run
  Mutex mutex_;                             // protects the answers, except their states, which are read without it
  Condition changed_;                       // a stream has answered
  std::shared_ptr<Unanswered> unanswered_;  // what drain() has registered; written under mutex_, by the thread that runs
};

}  // namespace heddle
