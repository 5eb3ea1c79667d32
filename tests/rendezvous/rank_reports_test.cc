// Reports of collectives that failed.
#include <utility>

#include "load/temporary_folder.h"
#include "rendezvous/reports.h"
#include "rendezvous/store_helpers.h"

namespace heddle::testing_rendezvous {
namespace {

Report example() {
  return {18446744073709551615u, "all-reduce \"loss\"\n", std::string("no bytes for 2 s\0 from 1", 24), {1, 2147483647}, 7, "step 12 34"};
}

TEST(Report, IsReadAsItWasWritten) {
  for (const Report& report : {example(), Report(), Report{1, "", "", {}, 0, "x"}}) {
    Report read = example();
    EXPECT_TRUE(decode(encode(report), &read));
    EXPECT_EQ(read, report);
  }
}

TEST(Report, ThatIsCutOffOrDamagedIsNone) {
  const std::string text = encode(example());
  Report untouched, read;
  for (size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(decode(text.substr(0, size), &untouched)) << size;
  for (size_t at = 0; at < text.size(); ++at)
    for (const char c : {'\0', '9', ' ', '\xff'}) {
      std::string other = text;
      const bool differs = std::exchange(other[at], c) != c;
      EXPECT_NE(decode(other, &read), differs) << at;
    }
  EXPECT_FALSE(decode(text + "x", &untouched));
  EXPECT_EQ(untouched, Report());
}

TEST(Report, IsWrittenOnceForAnAttempt) {
  const testing::TemporaryFolder folder;
  const auto store = store_at("file:" + folder.path().string());
  EXPECT_OK(report(*store, "a", 0, example()));
  EXPECT_OK(report(*store, "a", 0, Report()));
  EXPECT_OK(report(*store, "b", 0, Report{5, "", "", {}, 0, ""}));
  std::vector<std::optional<Report>> reports;
  EXPECT_OK(read_reports(*store, "a", 1, &reports));
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0], example());
  reports.clear();
  EXPECT_OK(read_reports(*store, "b", 1, &reports));
  EXPECT_EQ(reports[0]->number, 5u);
  expect_error(report(*store, "a", 1, Report()), HEDDLE_ERROR_INVALID, {"rank 0 can not write"});
}

TEST(Report, OfEachRankIsReadByAll) {
  const testing::TemporaryFolder folder;
  const std::string text = "file:" + folder.path().string();
  for (int32_t rank = 0; rank < 4; ++rank)
    EXPECT_OK(report(*store_at(text, rank, 4), "a", rank, Report{static_cast<uint64_t>(rank), "", "", {}, 0, ""}));
  for (int32_t reader = 0; reader < 4; ++reader) {
    std::vector<std::optional<Report>> reports;
    EXPECT_OK(read_reports(*store_at(text, reader, 4), "a", 4, &reports));
    ASSERT_EQ(reports.size(), 4u);
    for (uint64_t rank = 0; rank < 4; ++rank) {
      ASSERT_TRUE(reports[rank]) << rank;
      EXPECT_EQ(reports[rank]->number, rank);
    }
  }
}

TEST(Report, ThatIsNotThereIsNoError) {
  const testing::TemporaryFolder folder;
  const std::string text = "file:" + folder.path().string();
  const auto zero = store_at(text, 0, 3), one = store_at(text, 1, 3);
  EXPECT_OK(report(*zero, "a", 0, Report()));
  EXPECT_TRUE(set(*one, {1, "report/a"}, "rubbish"));
  std::vector<std::optional<Report>> reports;
  EXPECT_OK(read_reports(*zero, "a", 3, &reports));
  EXPECT_TRUE(reports[0]);
  ASSERT_TRUE(reports[1]);
  EXPECT_EQ(reports[1]->reason, "its report is damaged");
  EXPECT_FALSE(reports[2]);
  reports[1]->reason = "read";
  EXPECT_OK(report(*store_at(text, 2, 3), "a", 2, example()));
  EXPECT_OK(read_reports(*zero, "a", 3, &reports));
  EXPECT_EQ(reports[1]->reason, "read") << "none is read twice";
  EXPECT_EQ(reports[2], example());
}

}  // namespace
}  // namespace heddle::testing_rendezvous
