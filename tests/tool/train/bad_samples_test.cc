// heddle train --skip-bad: how many samples that can not be read are left out, and what is said of them.
#include "commands/train/bad_sample_warnings.h"
#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolTrain, SkipBadIsANumberOfSamples) {
  const Samples here;
  const Json object = heddle_json(here.train({"--skip-bad", "3", "--no-output"}));
  EXPECT_EQ(object["train"]["bad_samples"], 0);
  EXPECT_EQ(codes(object), Words{});
  EXPECT_EQ(heddle(here.train({"--skip-bad", "3", "--no-output"})).out.find("left out"), std::string::npos) << "none was";
  EXPECT_EQ(heddle(here.train({"--skip-bad", "-1", "--no-output"})).status, 2);
  EXPECT_EQ(heddle(here.train({"--skip-bad", "some", "--no-output"})).status, 2);
  EXPECT_EQ(heddle_json(here.train({"--skip-bad", "0", "--no-output"}))["train"]["bad_samples"], 0);
}

TEST(BadSampleWarnings, TenAreShownAndAllAreCounted) {
  tool::BadSampleWarnings warnings;
  EXPECT_EQ(warnings.summary(), "");
  for (int i = 1; i <= 12; ++i) {
    const Status error =
        Status(Code::file_truncated, "the picture ends too early", "take it again").during("while the samples of step 3 were read");
    const auto warning = warnings.take("cat" + std::to_string(i) + ".jpg", error);
    EXPECT_EQ(warnings.count(), i);
    ASSERT_EQ(warning.has_value(), i <= 10) << i;
    if (i > 10) continue;
    EXPECT_EQ(warning->text(), "warning[file-truncated]: sample cat" + std::to_string(i) +
                                   ".jpg is left out: the picture ends too early, while the samples of step 3 were read; take it again");
    if (i == 1) {
      EXPECT_EQ(warnings.summary(), "1 sample that could not be read was left out");
    }
    if (i == 10) {
      EXPECT_EQ(warnings.summary(), "10 samples that could not be read were left out");
    }
  }
  EXPECT_EQ(warnings.summary(), "12 samples that could not be read were left out; the first 10 are named above");
}

}  // namespace
}  // namespace heddle::tool_tests
