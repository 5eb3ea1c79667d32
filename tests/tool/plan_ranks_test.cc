// heddle plan --ranks: the time of a step for many processes, from a trace of one.
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

class ToolPlanRanks : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(heddle({"model", "lenet", "--train", "-o", file("one.heddle")}).status, 0);
    ASSERT_EQ(heddle({"model", "lenet", "--train", "--ranks", "2", "-o", file("ranks.heddle")}).status, 0);
    const std::vector<int64_t> labels(8);
    write_text(file("labels.npy"), npy_of("<i8", "8,", labels.data(), 8 * labels.size()));
    const Outcome traced = heddle({"run", file("one.heddle"), "--net", "train", "--symbol", "N=8", "--random", "1", "--input",
                                   "labels=" + file("labels.npy"), "--threads", "1", "--trace", file("trace.json")});
    ASSERT_EQ(traced.status, 0) << traced.err;
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  Words plan(const std::string& ranks, const std::string& link, const std::string& trace) const {
    return {"plan", file("ranks.heddle"), "--net", "train", "--symbol", "N=8", "--ranks", ranks, "--link", link, "--trace", trace};
  }

  const TemporaryFolder folder_;
};

TEST_F(ToolPlanRanks, PredictsFromATrace) {
  const Json object = heddle_json(plan("1,2,64", "1000,100", file("trace.json")));
  const Json& ranks = object["ranks"];
  ASSERT_EQ(ranks.size(), 3u);
  EXPECT_EQ(ranks[0]["ranks"], 1);
  EXPECT_EQ(ranks[0]["communication_ns"], 0);
  EXPECT_EQ(ranks[0]["exposed_ns"], 0);
  EXPECT_GT(ranks[0]["ns"].get<int64_t>(), 0);
  // A megabyte of gradients by 100 MB/s, and messages that take a millisecond.
  EXPECT_GT(ranks[1]["communication_ns"].get<int64_t>(), 2'000'000);
  EXPECT_GT(ranks[2]["communication_ns"], ranks[1]["communication_ns"]);
  for (size_t i = 1; i < 3; ++i)
    EXPECT_EQ(ranks[i]["ns"].get<int64_t>() - ranks[i]["exposed_ns"].get<int64_t>(), ranks[0]["ns"].get<int64_t>());
  const std::string text = heddle(plan("2,64", "1000,100,7", file("trace.json"))).out;
  EXPECT_NE(text.find("1000 us of delay, 100 MB/s for each and 7 us of work for each message"), std::string::npos) << text;
  EXPECT_NE(text.find("  64 ranks: "), std::string::npos) << text;
  EXPECT_EQ(text.find("share a processor"), std::string::npos) << text;
  const std::vector<std::string> shared = plan("2", "0,100000,0,2.5", file("trace.json"));
  EXPECT_NE(heddle(shared).out.find("both threads share a processor, of which each byte received takes 2.5 ns:\n"), std::string::npos);
  const Json apart = heddle_json(plan("2", "0,100000", file("trace.json")));
  EXPECT_GT(heddle_json(shared)["ranks"][0]["exposed_ns"], apart["ranks"][0]["exposed_ns"]);
}

TEST_F(ToolPlanRanks, NamesWhatIsWrong) {
  const std::string trace = file("trace.json");
  std::ofstream(file("no.json")) << "{\"traceEvents\": 3}";
  std::ofstream(file("other.json")) << R"({"traceEvents": [{"ph": "X", "name": "nothing of it", "dur": 1}]})";
  std::ofstream(file("cut.json")) << R"({"traceEvents": [{"ph": "X", "name")";
  struct Wrong {
    std::string ranks, link, trace, says;
  };
  for (const Wrong& wrong :
       {Wrong{"0", "1,1", trace, "--ranks: 0 is no number of ranks"}, Wrong{"2.5", "1,1", trace, "--ranks: 2.5"},
        Wrong{"2,", "1,1", trace, "--ranks \"2,\" is not"}, Wrong{"2", "1", trace, "--link \"1\" is not"},
        Wrong{"2", "1,0", trace, "--link \"1,0\" is not"}, Wrong{"2", "1,1,1,1,1", trace, "--link"}, Wrong{"2", "inf,1", trace, "--link"},
        Wrong{"2", "1,1", file("no.json"), "is no trace"}, Wrong{"2", "1,1", file("cut.json"), "is no trace"},
        Wrong{"2", "1,1", file("other.json"), "has no step of this plan"}, Wrong{"2", "1,1", file("missing.json"), "missing.json"}}) {
    const Outcome outcome = heddle(plan(wrong.ranks, wrong.link, wrong.trace));
    EXPECT_NE(outcome.status, 0) << wrong.says;
    EXPECT_NE(outcome.err.find(wrong.says), std::string::npos) << outcome.err;
  }
  EXPECT_EQ(heddle({"plan", file("ranks.heddle"), "--ranks", "2"}).status, 2);
}

}  // namespace
}  // namespace heddle::tool_tests
