// Ranges of a kernel's tiles: those that the scheduler's tiles map to, and those of some milliseconds, between which a long step can stop.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/threads/clock.h"
#include "heddle/abi.h"
#include "run/run_scope.h"

namespace heddle {

struct TileSpan {
  int64_t begin = 0, end = 0;
};

// Returns the range of a kernel's `tiles` that `part` of `parts` maps to: each tile belongs to one part, and they are spread evenly.
// Threads take neighbouring parts: a few tiles that all belonged to the first parts would be work for one thread.
inline TileSpan tiles_behind(TileSpan part, int64_t parts, int64_t tiles) {
  const auto first = [&](int64_t at) { return tiles / parts * at + tiles % parts * at / parts; };
  return {first(part.begin), first(part.end)};
}

// Runs `tiles` of step `step` by `run`; HEDDLE_ERROR_CANCELLED if `scope` requests the step to stop in between. `tile_ns`: the known cost
// of a tile, or 0.
inline heddle_status run_tiles(RunScope& scope, uint32_t step, heddle_run_function run, const heddle_run_context* context, TileSpan tiles,
                               double tile_ns) {
  constexpr double range_ns = 5e6;
  for (uint64_t before = ticks(); tiles.begin < tiles.end;) {
    const int64_t wanted = tile_ns > 0 ? std::max<int64_t>(1, static_cast<int64_t>(range_ns / tile_ns)) : 1;
    const int64_t count = std::min(wanted, tiles.end - tiles.begin);
    if (const heddle_status status = run(context, tiles.begin, tiles.begin + count); status != HEDDLE_OK) return status;
    tiles.begin += count;
    if (tiles.begin == tiles.end) break;
    if (scope.should_stop(step)) return HEDDLE_ERROR_CANCELLED;
    const uint64_t now = ticks();
    tile_ns = std::max(1.0, ticks_to_ns(now - before) / static_cast<double>(count));
    before = now;
  }
  return HEDDLE_OK;
}

}  // namespace heddle
