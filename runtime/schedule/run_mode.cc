#include "schedule/run_mode.h"

#include <algorithm>
#include <numeric>

namespace heddle {
namespace {

// The engine's overheads per step, measured on two cores and rounded up a little.
// Handing over in bulk makes steps worth sharing that are too small for it one by one.
constexpr ScheduleOverheads engine_overheads = {
    .step_ns = 10, .handover_ns = 300, .split_ns = 700, .run_ns = 2000, .small_ns = StepTable::small_ns / 2};
constexpr float serial_step_ns = 1.3F;

constexpr uint32_t measured_runs = 3;
constexpr double long_run_ns = 20e6;  // for runs this long, two measured runs are enough
constexpr uint32_t trial_runs = 6;
constexpr double not_worth_ns = 5000;      // nets shorter than this never leave the calling thread
constexpr double guess_at_least_ns = 1e6;  // before anything was measured, declared costs are used for nets longer than this
constexpr double promised_ratio = 0.99;
constexpr double guessed_ratio = 0.7;
constexpr double kept_ratio = 0.985;

}  // namespace

RunMode::RunMode(const StepTable& table, const std::vector<float>& declared_ns, uint32_t threads)
    : table_(table), threads_(threads), cost_ns_(declared_ns), measured_ns_(table.count()), rank_ns_(table.count()) {
  cost_ns_.resize(table.count(), 0);
  workspace_.reserve(table.count(), threads);
}

void RunMode::set_tiles(const Step* steps) {
  tiles_.resize(table_.count());
  for (uint32_t s = 0; s < table_.count(); ++s) tiles_[s] = steps[s].tiles;
  const auto unknown = std::count_if(cost_ns_.begin(), cost_ns_.end(), [](float cost) { return cost <= 0; });
  const double total = std::accumulate(cost_ns_.begin(), cost_ns_.end(), 0.0);
  parallel_ = unknown * 10 <= static_cast<int64_t>(cost_ns_.size()) && total >= guess_at_least_ns && promises_gain(guessed_ratio);
}

// Whether the engine would take less than `keep_below` of the serial loop's time.
bool RunMode::promises_gain(double keep_below) {
  double total = 0;
  double worth_sharing = 0;
  bool tiled = false;
  for (uint32_t s = 0; s < table_.count(); ++s) {
    total += cost_ns_[s];
    if (cost_ns_[s] < engine_overheads.small_ns) continue;
    worth_sharing += cost_ns_[s];
    tiled = tiled || (tiles_[s] > 1 && cost_ns_[s] >= StepTable::shared_ns);
  }
  if (worth_sharing < not_worth_ns) return false;
  const ScheduleGraph graph = table_.schedule_graph();
  remaining_paths(graph, cost_ns_.data(), rank_ns_.data());
  const double longest = *std::max_element(rank_ns_.begin(), rank_ns_.end());
  if (!tiled && longest >= keep_below * total) return false;
  const double serial = total + serial_step_ns * table_.count();
  return simulate_schedule(graph, cost_ns_.data(), rank_ns_.data(), tiles_.data(), threads_, engine_overheads, workspace_) <
         keep_below * serial;
}

bool RunMode::ran(const Choice& choice, double duration_ns) {
  ++runs_in_state_;
  if (state_ == State::settled) {
    watch(duration_ns);
    return false;
  }
  if (state_ == State::trying) {
    best_trial_ns_ = runs_in_state_ == 1 ? duration_ns : std::min(best_trial_ns_, duration_ns);
    if (runs_in_state_ == trial_runs) settle(best_trial_ns_ < kept_ratio * serial_ns_, best_trial_ns_ >= kept_ratio * serial_ns_);
    return false;
  }
  merge_measured(runs_in_state_ == 1);
  if (!choice.parallel) serial_ns_ = serial_ns_ == 0 ? duration_ns : std::min(serial_ns_, duration_ns);
  if (runs_in_state_ < measured_runs && (runs_in_state_ < 2 || duration_ns < long_run_ns)) return false;
  if (choice.parallel) serial_ns_ = std::accumulate(cost_ns_.begin(), cost_ns_.end(), 0.0);
  if (promises_gain(promised_ratio)) {
    state_ = State::trying;
    runs_in_state_ = 0;
  } else {
    settle(false, false);
  }
  return true;
}

// Keeps the least measured cost: the first run pays for cold caches, any run for other load on the machine.
void RunMode::merge_measured(bool first) {
  constexpr float known = 0.1F;  // 0 would mean unknown
  for (uint32_t s = 0; s < table_.count(); ++s) {
    const float cost = std::max(known, measured_ns_[s]);
    cost_ns_[s] = first ? cost : std::min(cost_ns_[s], cost);
  }
}

void RunMode::settle(bool parallel, bool look_again_soon) {
  state_ = State::settled;
  parallel_ = parallel;
  look_again_soon_ = look_again_soon;
  runs_in_state_ = 0;
  strikes_ = 0;
  run_ = 0;
  reference_ns_ = 0;
  look_again_after_ = std::min<uint64_t>(look_again_after_ * 2, 1u << 16);
}

// Watches for drift. Called for one settled run in 16.
void RunMode::watch(double duration_ns) {
  constexpr uint32_t reference_runs = 3;
  if (runs_in_state_ <= reference_runs) {
    reference_ns_ = runs_in_state_ == 1 ? duration_ns : std::min(reference_ns_, duration_ns);
    return;
  }
  const bool drifted = duration_ns > 2 * reference_ns_ || duration_ns < reference_ns_ / 2;
  strikes_ = drifted ? strikes_ + 1 : 0;
  if (run_ >= look_again_after_ && (strikes_ >= 3 || look_again_soon_)) start_measuring();
}

void RunMode::start_measuring() {
  state_ = State::measuring;
  runs_in_state_ = 0;
  serial_ns_ = 0;
}

}  // namespace heddle
