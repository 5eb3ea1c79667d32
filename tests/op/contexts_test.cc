// The properties of a node that its contexts report.
#include "heddle/op/contexts.h"

#include <gtest/gtest.h>

namespace heddle::plugin {
namespace {

TEST(CreateContext, KnowsTheIndexOfItsDevice) {
  const auto index_of = [](const char* device) {
    heddle_create_context raw = {};
    raw.device = device;
    return CreateContext(&raw).device_index();
  };
  EXPECT_EQ(index_of("cpu:0"), 0);
  EXPECT_EQ(index_of("cuda:1"), 1);
  EXPECT_EQ(index_of("cuda:12"), 12);
  EXPECT_EQ(index_of("npu2:3"), 3);
}

}  // namespace
}  // namespace heddle::plugin
