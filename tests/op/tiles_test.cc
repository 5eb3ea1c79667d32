#include "heddle/op/tiles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace heddle {
namespace {

using plugin::Tiles;

TEST(Tiles, CoverEveryElementOnceHoweverTheyAreSplit) {
  for (const int64_t elements : {1, 2, 15, 16, 17, 31, 32, 33, 1000})
    for (const int64_t grain : {1, 2, 7, 16, 999, 1000, 1001}) {
      SCOPED_TRACE(testing::Message() << elements << " by " << grain);
      const Tiles tiles = Tiles::of(elements, grain);
      EXPECT_EQ(tiles.count(), (elements + grain - 1) / grain);
      for (const int64_t at_once : {int64_t{1}, int64_t{3}, tiles.count()}) {
        std::vector<int> seen(static_cast<size_t>(elements), 0);
        for (int64_t begin = 0; begin < tiles.count(); begin += at_once)
          for (const int64_t i : tiles.elements(begin, std::min(begin + at_once, tiles.count()))) ++seen.at(static_cast<size_t>(i));
        EXPECT_EQ(seen, std::vector<int>(static_cast<size_t>(elements), 1));
      }
      for (int64_t tile = 0; tile + 1 < tiles.count(); ++tile) EXPECT_EQ(tiles.elements(tile).size(), grain);
    }
}

TEST(Tiles, OfNothingAreOneOfNothing) {
  const Tiles none = Tiles::of(0, 4096), made = Tiles();
  for (const Tiles& tiles : {none, made}) {
    EXPECT_EQ(tiles.count(), 1);
    EXPECT_EQ(tiles.elements(0, 1).size(), 0);
    EXPECT_EQ(tiles.elements(0).first, 0);
  }
}

TEST(Tiles, AreNeverMoreThanTheHostTakes) {
  constexpr int64_t all = std::numeric_limits<int64_t>::max();
  for (const int64_t elements : {int64_t{INT32_MAX}, int64_t{INT32_MAX} + 1, int64_t{1} << 50, all}) {
    const Tiles tiles = Tiles::of(elements, 0);
    EXPECT_LE(tiles.count(), INT32_MAX);
    EXPECT_GE(tiles.count(), INT32_MAX / 2);
    EXPECT_EQ(tiles.elements(tiles.count() - 1).last, elements);
    EXPECT_EQ(tiles.elements(0, tiles.count()).size(), elements);
    EXPECT_EQ(tiles.elements(0).last, tiles.grain());
  }
  EXPECT_EQ(Tiles::of(all, all).count(), 1);
}

}  // namespace
}  // namespace heddle
