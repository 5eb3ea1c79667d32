// Steps of several tiles: the thread that begins one works from the front, threads with nothing else to do join from the back. The
// thread that does the last range calls the step's finish function and continues with its successors. Results never depend on the split:
// the number of tiles is the kernel's, and finish combines them in tile order.
#include <algorithm>

#include "base/random.h"
#include "base/threads/clock.h"
#include "schedule/parallel.h"
#include "schedule/step_call.h"

namespace heddle {

// Begins a step of several tiles and works on it. True: this thread finished the step.
bool ParallelEngine::own_tiles(Worker& w, uint32_t step) noexcept {
  constexpr int64_t max_units = int64_t{1} << 30;
  Tiles& tiles = tiles_[table_[step].tile_slot - 1];
  const int64_t count = steps_[step].tiles;
  tiles.unit = (count + max_units - 1) / max_units;
  const auto units = static_cast<uint32_t>((count + tiles.unit - 1) / tiles.unit);
  tiles.unfinished.store(units, std::memory_order_relaxed);
  tiles.least.store(shuffle_seed_ != 0 ? 1 : table_.min_tiles(step, units), std::memory_order_relaxed);
  tiles.broken.store(0, std::memory_order_relaxed);
  tiles.spent.store(0, std::memory_order_relaxed);
  const uint64_t begin = timed_ ? ticks() : 0;
  if (control_->profile) control_->profile[step] = {begin, 0, 0};
  if ((table_[step].flags & StepTable::resolves) != 0) {
    const heddle_status status = call_run(steps_[step], 0, 0);
    if (status != HEDDLE_OK) return fail(step, status), false;
    if (timed_) tiles.spent.store(ticks() - begin, std::memory_order_relaxed);
  }
  tiles.unclaimed.open(units);
  if (threads_ > 1) {
    w.tiled.store(step, std::memory_order_seq_cst);
    call_help(units - 1);
  }
  const bool finished = work_on_tiles(w, step, TileEnd::front, claim_tiles(w, tiles, TileEnd::front));
  w.tiled.store(no_step, std::memory_order_relaxed);
  return finished;
}

TileRange::Claim ParallelEngine::claim_tiles(Worker& w, Tiles& tiles, TileEnd from) noexcept {
  if (shuffle_seed_ != 0)
    return tiles.unclaimed.claim(from, [&](uint32_t unclaimed) { return 1 + static_cast<uint32_t>(next_random(w.random) % unclaimed); });
  const uint32_t least = tiles.least.load(std::memory_order_relaxed);
  return tiles.unclaimed.claim(from, [&](uint32_t unclaimed) { return fair_share(unclaimed, threads_, least); });
}

// Runs tiles [first, end), and notes when they ran where the run is profiled.
heddle_status ParallelEngine::run_range(const Worker& w, uint32_t step, int64_t first, int64_t end) noexcept {
  if (!control_->tiles) return call_run(steps_[step], first, end);
  const uint64_t begin = ticks();
  const heddle_status status = call_run(steps_[step], first, end);
  control_->tiles->add({begin, ticks(), step, w.index, first, end - first});
  return status;
}

// Works on `claim` and further ranges that it can claim. True: these were the last of the step, and all tiles succeeded.
bool ParallelEngine::work_on_tiles(Worker& w, uint32_t step, TileEnd from, TileRange::Claim claim) noexcept {
  if (claim.size() == 0) return false;
  Tiles& tiles = tiles_[table_[step].tile_slot - 1];
  const Step& s = steps_[step];
  const uint64_t begin = timed_ ? ticks() : 0;
  uint32_t units = 0;
  for (; claim.size() != 0; claim = claim_tiles(w, tiles, from)) {
    units += claim.size();
    heddle_status status = HEDDLE_OK;
    const bool leave_out = stopped() || tiles.broken.load(std::memory_order_relaxed) != 0;
    if (!leave_out) status = run_range(w, step, claim.begin * tiles.unit, std::min(claim.end * tiles.unit, s.tiles));
    if (!leave_out && status == HEDDLE_OK) continue;
    const bool first = tiles.broken.exchange(1, std::memory_order_relaxed) == 0;
    if (status != HEDDLE_OK && first) fail(step, status);
    units += tiles.unclaimed.claim_all().size();
    break;
  }
  if (timed_) {
    tiles.spent.fetch_add(ticks() - begin, std::memory_order_relaxed);
    if (control_->profile)
      std::atomic_ref<uint64_t>(control_->profile[step].workers).fetch_or(uint64_t{1} << std::min(w.index, 63u), std::memory_order_relaxed);
  }
  return finish_tiles(step, units);
}

// Counts `units` as done; after the last ones finishes the step. True: the step is finished, and all tiles succeeded.
bool ParallelEngine::finish_tiles(uint32_t step, uint32_t units) noexcept {
  Tiles& tiles = tiles_[table_[step].tile_slot - 1];
  if (tiles.unfinished.fetch_sub(units, std::memory_order_acq_rel) != units) return false;
  if (tiles.broken.load(std::memory_order_relaxed) != 0) return false;
  const uint64_t begin = timed_ ? ticks() : 0;
  const heddle_status status = call_finish(graph_, steps_[step], step);
  if (timed_) {
    const uint64_t end = ticks();
    const uint64_t spent = tiles.spent.load(std::memory_order_relaxed) + (end - begin);
    if (measured_ns_) measured_ns_[step] = static_cast<float>(ticks_to_ns(spent));
    if (control_->profile) control_->profile[step].end = end;
  }
  if (status != HEDDLE_OK) fail(step, status);
  return status == HEDDLE_OK;
}

// Takes part in a step that another thread began; returns as take() does.
uint32_t ParallelEngine::join_tiles(Worker& w) noexcept {
  for (const Worker& owner : workers_) {
    const uint32_t step = owner.tiled.load(std::memory_order_acquire);
    if (step == no_step || &owner == &w) continue;
    Tiles& tiles = tiles_[table_[step].tile_slot - 1];
    if (tiles.unclaimed.empty()) continue;
    gain_token();
    const TileRange::Claim claim = claim_tiles(w, tiles, TileEnd::back);
    if (claim.size() != 0) {
      // While this thread has a claim, the run can not end: its steps and control may be used.
      hungry_.fetch_sub(1, std::memory_order_relaxed);
      w.took_part = true;
      ++w.joined;
      const FairSharedMutex::Helping helping(control_->holds);
      const uint32_t next = work_on_tiles(w, step, TileEnd::back, claim) ? follow(w, step) : no_step;
      if (next != no_step) return next;
      hungry_.fetch_add(1, std::memory_order_relaxed);
    }
    release_token();
  }
  return no_step;
}

}  // namespace heddle
