#include "run/tile_ranges.h"

#include <algorithm>

#include "base/clock.h"

namespace heddle {

heddle_status run_tiles(RunScope& scope, uint32_t step, heddle_run_function run, const heddle_run_context* context, TileSpan tiles,
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
