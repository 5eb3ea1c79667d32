// Communicators in the tool: what looks at a net does not make them, and a run makes them within its deadline.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// A net whose communicator takes `create_ms` to make, whatever the host says meanwhile.
std::string sum_net(int create_ms) {
  return net_text(
      "peers", R"("x")", R"("y")", input("x", "4"),
      R"({"name": "y", "type": "Sum", "domain": "peers", "inputs": ["x"], "outputs": ["y"], "attributes": {"communicator": {"string": "world"}, )"
      R"("create_ms": {"int": )" +
          std::to_string(create_ms) + "}}}");
}

TEST(ToolPeers, PlanAndCheckMakeNoCommunicator) {
  const NetFolder folder(sum_net(600'000));  // longer than any test may take
  const std::string peers = test_plugin("peers");
  EXPECT_EQ(heddle_json({"check", folder.net(), "--plugin", peers})["status"], "ok");
  for (const char* device : {"cpu:0", "sim:0"}) {
    const Json plan = heddle_json({"plan", folder.net(), "--plugin", peers, "--device", device});
    ASSERT_EQ(plan["collectives"].size(), 1u);
    EXPECT_EQ(plan["collectives"][0]["name"], "y");
    EXPECT_EQ(plan["collectives"][0]["device"], device);
    EXPECT_EQ(plan["collectives"][0]["communicator"], "world");
    ASSERT_EQ(plan["communicators"].size(), 1u);
    EXPECT_EQ(plan["communicators"][0]["name"], "world");
  }
}

TEST(ToolPeers, ARunEndsAtItsDeadlineWhileOneIsMade) {
  const NetFolder folder(sum_net(3'000));
  const Json run = heddle_json({"run", folder.net(), "--plugin", test_plugin("peers"), "--random", "1", "--deadline", "0.05"}, 1);
  EXPECT_EQ(codes(run), (Words{"deadline-exceeded"}));
}

TEST(ToolPeers, RunsAreOneProcessAlone) {
  const NetFolder folder(sum_net(0));
  EXPECT_EQ(heddle_json({"run", folder.net(), "--plugin", test_plugin("peers"), "--random", "1", "--repeat", "3"})["status"], "ok");
}

}  // namespace
}  // namespace heddle::tool_tests
