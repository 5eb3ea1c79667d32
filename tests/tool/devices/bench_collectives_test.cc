// heddle bench --collectives.
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolBench, MeasuresCollectives) {
  for (const Words& kind : {Words{}, Words{"--device", "sim"}}) {
    Words words = {"bench", "--collectives", "--members", "1,2", "--sizes", "64,4K", "--repeat", "3", "--warmup", "1"};
    words.insert(words.end(), kind.begin(), kind.end());
    const Json object = heddle_json(words);
    ASSERT_EQ(object["collectives"].size(), 7u * 2 * 2);
    std::set<std::string> operators;
    for (const Json& one : object["collectives"]) {
      operators.insert(one["operator"].get<std::string>());
      EXPECT_GT(one["latency_ns"]["median"].get<int64_t>(), 0);
    }
    EXPECT_EQ(operators.size(), 7u);
  }
}

TEST(ToolBench, NeedsANetOrCollectives) {
  EXPECT_EQ(codes(heddle_json({"bench"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json({"bench", "net.heddle", "--collectives"}, 2)), Words{"unknown-option"});
  EXPECT_EQ(codes(heddle_json({"bench", "--collectives", "--threads", "2"}, 2)), Words{"unknown-option"});
  EXPECT_EQ(codes(heddle_json({"bench", "--collectives", "--sizes", "big"}, 2)), Words{"invalid-argument"});
}

}  // namespace
}  // namespace heddle::tool_tests
