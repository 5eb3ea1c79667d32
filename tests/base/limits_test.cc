#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "base/text/limit_names.h"

namespace heddle {
namespace {

TEST(LimitTable, NamesEachLimitOnce) {
  std::set<std::string> names;
  for (const LimitEntry& entry : limit_table()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    Limits limits;
    ASSERT_TRUE(set_limit(limits, entry.name, 77).ok()) << entry.name;
    EXPECT_EQ(limits.*entry.value, 77) << entry.name;
    EXPECT_GE(entry.most, Limits().*entry.value) << entry.name;
    EXPECT_EQ(set_limit(limits, entry.name, entry.most + 1).code(), Code::invalid_argument) << entry.name;
    EXPECT_EQ(set_limit(limits, entry.name, -1).code(), Code::invalid_argument) << entry.name;
    EXPECT_EQ(limits.*entry.value, 77) << entry.name;
  }
  // Each limit is documented.
  std::stringstream page;
  page << std::ifstream(HEDDLE_SOURCE_DIR "/docs/net_format.md").rdbuf();
  for (const std::string& name : names) EXPECT_NE(page.str().find("| `" + name + "`"), std::string::npos) << name;
}

TEST(LimitTable, UnknownNamesAreAnsweredWithNearAndAll) {
  Limits limits;
  const Status status = set_limit(limits, "tensor_byte", 1);
  EXPECT_EQ(status.code(), Code::unknown_name);
  EXPECT_NE(status.text().find("did you mean \"tensor_bytes\"?"), std::string::npos) << status.text();
  for (const LimitEntry& entry : limit_table()) EXPECT_NE(status.text().find(entry.name), std::string::npos) << status.text();
}

TEST(LimitTable, WhatIsOverALimitNamesItAndHowToRaiseIt) {
  const Status status = over_limit(Limits(), &Limits::name_bytes, "a name has 5000 bytes");
  EXPECT_EQ(status.code(), Code::limit_exceeded);
  EXPECT_NE(status.text().find("a name has 5000 bytes, the limit name_bytes is 4.0 KiB"), std::string::npos) << status.text();
  EXPECT_EQ(status.diagnostic().hint, "if you trust it, raise the limit with SessionOptions::limits.name_bytes");
  EXPECT_EQ(status.diagnostic().option, "SessionOptions::limits.name_bytes");
}

}  // namespace
}  // namespace heddle
