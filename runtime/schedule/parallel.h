// Runs a step graph on the calling thread and on helpers that an Executor lends.
//
// Each thread has a private list of ready steps and continues with the steps that it made ready itself. It shows work to others in one
// place, its offer, when a thread is idle or before it begins a step so long that hiding the rest would hurt; takers take the whole offer.
// Steps of several tiles are claimed in ranges from both ends by threads that have nothing else to do.
//
// Which thread may touch what: `busy_` counts the tokens, one for each thread that holds work and for each asynchronous or suspended step
// in flight. A thread without work takes a token before it takes anything shared and releases it when it has no more work, so that at 0 no
// work exists anywhere and the run is over. A helper without work touches only this object, never the run's steps or control: run() need
// not wait for helpers to leave, and helpers that come late find nothing. The object lives until the last helper has left (shared
// ownership by HelperSlots).
//
// Threads: run(), start() and resume() are called by one thread at a time. Nothing allocates after the first set_costs().
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/threads/alarm.h"
#include "base/threads/mutex.h"
#include "base/threads/patience.h"
#include "heddle/executor.h"
#include "schedule/helpers/helper_slots.h"
#include "schedule/offer.h"
#include "schedule/ready_list.h"
#include "schedule/step_table.h"
#include "schedule/tile_range.h"

namespace heddle {

class ParallelEngine final : public std::enable_shared_from_this<ParallelEngine>, private HelperHost {
 public:
  // `executor`: null for one thread; otherwise it must live until the last task it was given has been executed. `shuffle_seed`: 0, or a
  // seed for random legal schedules.
  ParallelEngine(const StepGraph& graph, Executor* executor, uint32_t threads, uint64_t shuffle_seed);
  ~ParallelEngine() override;

  // Sets the engine in whose steps this one runs: its idle threads are called in place of an executor's. Call it first.
  void set_outer(ParallelEngine* outer) { outer_ = outer; }
  // [executing thread `worker`] Lets idle threads of this run help `nested`, which the calling thread is about to run, until end_hosting().
  void host(uint32_t worker, ParallelEngine& nested) noexcept;
  void end_hosting(uint32_t worker) noexcept;

  // Sets the costs of steps (0: unknown) and their numbers of tiles. Call it before the first run, and only between runs.
  void set_costs(const Step* steps, const float* cost_ns);
  // Runs the steps; returns when every started step has finished. True: all steps ran and none failed. `measured_ns`: null, or by step: set
  // to the single-threaded time of each step.
  bool run(const Step* steps, RunControl& control, float* measured_ns) noexcept {
    start(steps, control, measured_ns, {});
    return complete_;
  }
  // Like run(), but may give the calling thread back. True: the run is over, and complete() returns how it ended. False: it has left the
  // calling thread, which must not touch it any more; it continues in resume(), to be called once for each call of `leave.go_on`.
  bool start(const Step* steps, RunControl& control, float* measured_ns, const RunLeave& leave) noexcept;
  bool resume() noexcept;
  bool complete() const noexcept { return complete_; }
  // [executing threads] expect(): an awaited step will be completed; unexpect(): it will not after all. REQUIRES: the thread holds a token.
  void expect(uint32_t step) noexcept;
  void unexpect() noexcept;
  // [any thread] Completes an asynchronous step.
  void complete(uint32_t step, heddle_status status) noexcept;
  // [between runs] Whether nothing of the last run is in flight any more. Asynchronous steps that were given up complete later: their
  // successors are not run, and until then the memory that they use must stay.
  bool answered() noexcept;
  bool given_up() const noexcept { return given_up_.load(std::memory_order_relaxed); }
  bool reached_tail() const noexcept { return stop_ == &tail_stop_; }
  // [any thread] Wakes the calling thread of run(), if it sleeps.
  void wake_caller() noexcept;

  const StepTable& table() const { return table_; }
  // Returns the number of threads that executed something in the last run.
  uint32_t executing_threads() const noexcept;

 private:
  struct alignas(64) Worker {
    // Read by all, written by all (offer: only its owner writes anything but 0).
    std::atomic<uint64_t> offer{0};                // an Offer; 0: none
    std::atomic<uint32_t> tiled{no_step};          // a step whose tiles others may claim
    std::atomic<ParallelEngine*> nested{nullptr};  // the nested run in its current step
    mutable std::atomic<uint32_t> visitors{0};     // threads that look at `nested` or help it
                                                   // Used by its owner only.
    alignas(64) StepChain small;                   // last in, first out
    StepChain ready;                               // by remaining path
    uint32_t index = 0;
    uint32_t finished = 0;  // steps of this run
    uint32_t joined = 0;    // times it took part in another thread's step
    bool took_part = false;
    uint64_t random = 0;
  };
  struct alignas(64) Tiles {
    TileRange unclaimed;
    std::atomic<uint32_t> unfinished{0};  // units
    std::atomic<uint32_t> least{1};       // units worth claiming
    std::atomic<uint32_t> broken{0};      // a range failed or was skipped
    std::atomic<uint64_t> spent{0};       // ticks, all threads together
    int64_t unit = 1;                     // tiles
  };
  struct Completion {
    heddle_status status = HEDDLE_OK;
    uint64_t at = 0;  // ticks
  };

  // The scheduler's inner loop and its parts (parallel.cc).
  uint32_t begin_phase(const std::vector<uint32_t>& roots) noexcept;
  bool end_phase() noexcept;
  bool go_on(uint32_t step) noexcept;
  void work(Worker& w, uint32_t step) noexcept;
  bool execute(Worker& w, uint32_t step) noexcept;
  bool call_step(uint32_t step) noexcept;
  uint32_t follow(Worker& w, uint32_t done) noexcept;
  uint32_t count_down(Worker& w, uint32_t done) noexcept;
  void keep(Worker& w, uint32_t step, uint32_t& behind) noexcept;
  uint32_t choose(Worker& w, uint32_t best) noexcept;
  uint32_t choose_waiting(Worker& w, uint32_t best) noexcept;
  uint32_t choose_randomly(Worker& w, uint32_t best) noexcept;
  static void dawdle(Worker& w) noexcept;
  bool start_asynchronous(Worker& w, uint32_t step) noexcept;
  bool run_suspending(Worker& w, uint32_t step) noexcept;
  bool is_begun(uint32_t step) const noexcept;
  void absorb_completed(Worker& w) noexcept;
  bool stopped() noexcept;
  void fail(uint32_t step, heddle_status status) noexcept;
  void note_span(const Worker& w, uint32_t step, uint64_t begin, uint64_t end) noexcept;

  // Steps of several tiles (parallel_tiles.cc).
  bool own_tiles(Worker& w, uint32_t step) noexcept;
  TileRange::Claim claim_tiles(Worker& w, Tiles& tiles, TileEnd from) noexcept;
  bool work_on_tiles(Worker& w, uint32_t step, TileEnd from, TileRange::Claim claim) noexcept;
  heddle_status run_range(const Worker& w, uint32_t step, int64_t first, int64_t end) noexcept;
  bool finish_tiles(uint32_t step, uint32_t units) noexcept;
  uint32_t join_tiles(Worker& w) noexcept;

  // Sharing and waiting (parallel_share.cc).
  enum : uint32_t { caller_awake, caller_asleep, caller_left };
  bool worth_showing(const Worker& w) const noexcept { return threads_ > 1 && (!w.ready.empty() || w.small.count >= many_small); }
  void share(Worker& w, uint32_t next) noexcept;
  void offer(Worker& w, StepChain chain) noexcept;
  void take_back(Worker& w) noexcept;
  void call_help(uint32_t wanted) noexcept;
  uint32_t take(Worker& w) noexcept;
  uint32_t steal(Worker& w) noexcept;
  uint32_t take_completed(Worker& w) noexcept;
  bool visit_nested(const Worker& w) noexcept;
  void visit(uint32_t worker) noexcept;
  bool anything_to_take() const noexcept;
  uint32_t wait_as_caller() noexcept;
  uint32_t wait_as_helper(Worker& w) noexcept;
  void park_caller(uint64_t until, bool told) noexcept;
  bool leave_thread(uint64_t until, bool told) noexcept;
  bool something_to_do(bool told) const noexcept;
  bool look_at_end() noexcept;
  bool stop_requested() const noexcept;
  bool give_up() noexcept;
  void gain_token() noexcept {
    if (table_.has_asynchronous()) at_work_.fetch_add(1);
    busy_.fetch_add(1, std::memory_order_relaxed);
  }
  void release_token() noexcept {
    if (table_.has_asynchronous()) at_work_.fetch_sub(1);
    release_step();
  }
  // Gains the token of an asynchronous step in flight.
  void gain_step() noexcept { busy_.fetch_add(1, std::memory_order_relaxed); }
  void release_step() noexcept;
  static constexpr uint32_t left_thread_step = no_step - 1;  // returned in place of a step: the run has left its thread
  static constexpr uint32_t many_small = 16;                 // small steps that are worth an offer
  static constexpr uint32_t few = 8;                         // ready steps whose order is worth some trouble

  // [helper] HelperHost: works until there has been nothing to do for a while.
  void help(uint32_t worker) noexcept override;
  bool wanted() const noexcept override { return anything_to_take(); }
  std::shared_ptr<void> keep_alive() noexcept override { return shared_from_this(); }

  const StepGraph& graph_;
  StepTable table_;
  const uint32_t threads_;
  const uint64_t shuffle_seed_;
  ParallelEngine* outer_ = nullptr;
  std::vector<Worker> workers_;
  std::vector<StepNode> nodes_;
  std::vector<Tiles> tiles_;  // by Entry::tile_slot - 1
  std::vector<Completion> completions_;
  HelperSlots helpers_;

  // State of the current run; written by run() while no other thread holds work.
  const Step* steps_ = nullptr;
  RunControl* control_ = nullptr;
  std::atomic<uint32_t>* stop_ = nullptr;
  uint64_t deadline_ = 0;
  float* measured_ns_ = nullptr;
  bool timed_ = false;
  RunLeave leave_;
  bool complete_ = false;
  Patience patience_;  // with the asynchronous steps, once the run was requested to stop
  uint64_t shuffles_ = 0;
  std::atomic<uint32_t> tail_stop_{0};

  // Threads that look for work. Read after each step, so kept apart from members that change often.
  alignas(64) std::atomic<int32_t> hungry_{0};
  alignas(64) std::atomic<uint32_t> busy_{0};
  alignas(64) std::atomic<uint32_t> running_{0};  // a run is under way: helpers stay longer
  std::atomic<uint32_t> caller_parked_{caller_awake};
  Mutex park_mutex_;  // protects nothing by itself: the caller sleeps with it
  Condition parked_;
  std::atomic<uint32_t> at_work_{0};          // threads that hold a token, where there are asynchronous steps
  std::atomic<uint32_t> begun_{0};            // steps with `suspends` that were begun and are not done: they are never given up
  std::atomic<bool> given_up_{false};         // the run is over although asynchronous steps are in flight
  std::atomic<uint32_t> completed_{no_step};  // a stack of finished asynchronous steps
  std::atomic<uint32_t> completing_{0};       // threads inside complete() or leaving a run
  Alarm alarm_{[](void* self) { static_cast<ParallelEngine*>(self)->wake_caller(); }, this};
};

}  // namespace heddle
