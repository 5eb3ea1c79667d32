#include "run/tile_ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace heddle {
namespace {

TEST(TileRanges, AKernelsTilesStandBehindOnePartEachAndAreSpread) {
  for (const int64_t parts : {1, 8, 12, 64})
    for (const int64_t tiles : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{7}, int64_t{8}, int64_t{1000}, INT64_MAX}) {
      SCOPED_TRACE(testing::Message() << tiles << " behind " << parts);
      int64_t next = 0, fewest = INT64_MAX, most = 0;
      for (int64_t part = 0; part < parts; ++part) {
        const TileSpan own = tiles_behind({part, part + 1}, parts, tiles);
        EXPECT_EQ(own.begin, next);
        next = own.end;
        fewest = std::min(fewest, own.end - own.begin);
        most = std::max(most, own.end - own.begin);
      }
      EXPECT_EQ(next, tiles);
      EXPECT_LE(most - fewest, 1);
      if (parts % 2 != 0) continue;
      const TileSpan half = tiles_behind({0, parts / 2}, parts, tiles);
      EXPECT_LE(std::abs(tiles - 2 * (half.end - half.begin)), 1);  // also for two tiles in eight parts
    }
}

}  // namespace
}  // namespace heddle
