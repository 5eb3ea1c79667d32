// Tiles of a long step in ranges of some milliseconds, so that the step can be told to end between them.
#pragma once

#include <cstdint>

#include "heddle/abi.h"
#include "run/run_scope.h"

namespace heddle {

struct TileSpan {
  int64_t begin = 0, end = 0;
};

// Runs `tiles` of step `step` by `run`; HEDDLE_ERROR_CANCELLED when `scope` tells the step to stop in between. `tile_ns`: what is known of
// the cost of a tile, or 0.
heddle_status run_tiles(RunScope& scope, uint32_t step, heddle_run_function run, const heddle_run_context* context, TileSpan tiles,
                        double tile_ns);

}  // namespace heddle
