// Orders of dimensions as plans keep them.
#include "net/layout_order.h"

#include <gtest/gtest.h>

#include <cstring>

namespace heddle {
namespace {

TEST(DimensionOrder, IsTheLayoutThatItWasMadeOf) {
  heddle_layout layouts[3] = {};
  layouts[1].rank = 4;
  layouts[2].rank = 8;
  layouts[2].flags = 1;
  const uint8_t last[4] = {0, 2, 3, 1};
  std::copy_n(last, 4, layouts[1].order);
  for (uint8_t i = 0; i < 8; ++i) layouts[2].order[i] = static_cast<uint8_t>(7 - i);
  for (const heddle_layout& layout : layouts) {
    ASSERT_TRUE(is_order(layout, layout.rank));
    const heddle_layout again = DimensionOrder(layout);
    EXPECT_EQ(std::memcmp(&again, &layout, sizeof(layout)), 0) << layout_text(layout);
    EXPECT_EQ(DimensionOrder(again), DimensionOrder(layout));
  }
  EXPECT_FALSE(DimensionOrder(layouts[0]) == DimensionOrder(layouts[1]));
}

}  // namespace
}  // namespace heddle
