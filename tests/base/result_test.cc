// A Result or Status that is used without a check of ok(): the program ends with the error's own text, not with a fault of memory.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "heddle/status.h"

namespace heddle {
namespace {

Result<std::string> failed() {
  return Status(Code::file_not_found, "can't open \"typo.heddle\"", "check the path").in_net("typo");
}
const char* const words = "without asking ok\\(\\): error\\[file-not-found\\] \"typo\": can't open \"typo.heddle\"; check the path";

TEST(ResultDeath, EveryWayToItsValueEndsWithTheError) {
  const Result<std::string> constant = failed();
  Result<std::string> result = failed();
  EXPECT_DEATH((void)result->size(), words);
  EXPECT_DEATH((void)constant->size(), words);
  EXPECT_DEATH((void)(*result).size(), words);
  EXPECT_DEATH((void)(*constant).size(), words);
  EXPECT_DEATH((void)result.value().size(), words);
  EXPECT_DEATH((void)constant.value().size(), words);
  EXPECT_DEATH((void)(*failed()).size(), words);
  EXPECT_DEATH((void)failed().value().size(), words);
}

// The program's last lines are in the buffer of stdout, which abort() does not write.
TEST(ResultDeath, WhatTheProgramHasPrintedIsNotLost) {
  const std::string file = ::testing::TempDir() + "heddle_result_test_" + std::to_string(::getpid());
  const auto uses_a_failed_one = [&] {
    if (!std::freopen(file.c_str(), "w", stdout)) return;
    std::setvbuf(stdout, nullptr, _IOFBF, 4096);
    std::printf("the last line");
    (void)failed().value().size();
  };
  EXPECT_DEATH(uses_a_failed_one(), words);
  std::ifstream printed(file);
  const std::string text((std::istreambuf_iterator<char>(printed)), std::istreambuf_iterator<char>());
  std::remove(file.c_str());
  EXPECT_EQ(text, "the last line");
}

TEST(ResultDeath, OneWithoutAnErrorSaysSo) {
  Result<std::string> result = failed();
  const Status taken = std::move(result).status();
  EXPECT_DEATH((void)result->size(), "its status is ok, or was taken out of it");
  EXPECT_DEATH((void)Result<int>(Status()).value(), "its status is ok, or was taken out of it");
  const Status ok;
  EXPECT_DEATH((void)ok.diagnostic().message.size(), "of a heddle::Status that is ok");
  EXPECT_EQ(taken.code(), Code::file_not_found);
}

TEST(Result, HoldsItsValue) {
  Result<std::string> result = std::string("abc");
  EXPECT_TRUE(result.ok());
  EXPECT_EQ(result->size(), 3u);
  EXPECT_EQ(*result, "abc");
  EXPECT_EQ(std::move(result).value(), "abc");
}

}  // namespace
}  // namespace heddle
