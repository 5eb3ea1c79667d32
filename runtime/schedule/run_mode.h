// Chooses for each run between the serial loop and the parallel engine, by the measured costs of the steps. Costs that kernels declare are
// a first guess only, used until the first runs have been measured.
//
// The life of a choice: a few measured runs; a simulated schedule with the scheduler's own overheads; if that promises a gain, a few
// trial runs that must confirm it (cores may be busy, memory may be the limit); then the choice is kept until the duration of runs
// drifts by a factor of two. Measurements are repeated less often each time.
//
// Belongs to one Scheduler; one thread at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/list_schedule.h"
#include "schedule/step_table.h"

namespace heddle {

class RunMode {
 public:
  // How the next run is executed. `timed`: pass its duration to ran().
  struct Choice {
    bool parallel = false;
    bool measure = false;
    bool timed = false;
  };

  // `declared_ns`: a guess by step, 0: unknown; may be empty. Both references outlive this.
  RunMode(const StepTable& table, const std::vector<float>& declared_ns, uint32_t threads);

  // Sets the numbers of tiles of steps. Call it before the first run.
  void set_tiles(const Step* steps);

  Choice next() noexcept {
    if (state_ == State::settled) [[likely]]
      return {parallel_, false, (++run_ & 15u) == 0};
    return {state_ == State::trying || parallel_, state_ == State::measuring, true};
  }
  // Call it after a timed run that finished all its steps. True: the costs have changed and must be set in the engine.
  bool ran(const Choice& choice, double duration_ns);

  // Filled by a measured run.
  float* measured_ns() { return measured_ns_.data(); }
  // Returns the costs as known by now: the least measured cost of each step, or the declared one.
  const std::vector<float>& cost_ns() const { return cost_ns_; }
  bool parallel() const { return parallel_; }

 private:
  enum class State { measuring, trying, settled };
  void start_measuring();
  void merge_measured(bool first);
  bool promises_gain(double keep_below);
  void settle(bool parallel, bool look_again_soon);
  void watch(double duration_ns);

  const StepTable& table_;
  const uint32_t threads_;
  State state_ = State::measuring;
  bool parallel_ = false;
  bool look_again_soon_ = false;
  uint32_t runs_in_state_ = 0;
  uint32_t strikes_ = 0;
  uint64_t run_ = 0;                // since settled
  uint64_t look_again_after_ = 16;  // runs; doubled each time
  double serial_ns_ = 0;            // best measured serial run, 0: none
  double best_trial_ns_ = 0;
  double reference_ns_ = 0;  // the duration of a settled run
  std::vector<float> cost_ns_;
  std::vector<float> measured_ns_;
  std::vector<float> rank_ns_;
  std::vector<int64_t> tiles_;
  ScheduleWorkspace workspace_;
};

}  // namespace heddle
