// heddle plan and reports of nets with collectives: order, bytes, buckets, exposed communication.
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

class ToolPlanCollectives : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(heddle({"model", "lenet", "--train", "--devices", "sim:0,sim:1", "-o", net()}).status, 0); }
  std::string net() const { return (folder_ / "lenet.heddle").string(); }
  Words plan(const Words& more = {}) const {
    Words words = {"plan", net(), "--net", "train", "--symbol", "N=8", "--copies", "auto"};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  const TemporaryFolder folder_;
};

TEST_F(ToolPlanCollectives, ShowsTheRuleOfBuckets) {
  const std::string rule = "a bucket of gradients ends at 256.0 KiB: 1/8 of all 241.0 KiB, but at least 256.0 KiB and at most 25.0 MiB";
  EXPECT_NE(heddle(plan()).out.find("\n  " + rule + "\n"), std::string::npos);
  const Json object = heddle_json(plan());
  EXPECT_EQ(object["communicators"][0]["buckets"], rule);
  EXPECT_TRUE(object["predicted"].is_null());
}

// The link takes 1000 ns and 1 ns for each byte; all communication comes after the last gradient.
TEST_F(ToolPlanCollectives, PredictsTheTimeOnDevices) {
  const Json object = heddle_json(plan({"--cost", "Conv=5000,AllReduce=1000+1"}));
  const int64_t bytes = object["collectives"][0]["bytes"].get<int64_t>();
  EXPECT_EQ(object["predicted"]["communication_ns"], 1000 + bytes);
  EXPECT_EQ(object["predicted"]["exposed_ns"], 1000 + bytes);
  EXPECT_EQ(object["predicted"]["ns"], 2 * 5000 + 1000 + bytes);
  const std::string text = heddle(plan({"--cost", "Conv=5000", "--cost", "AllReduce=1000+1"})).out;
  EXPECT_NE(text.find("predicted: " + std::to_string(11000 + bytes) + " ns on devices"), std::string::npos) << text;
}

// Beside the difference to another plan it is said too; beside a graph there is no place for it.
TEST_F(ToolPlanCollectives, PredictsBesideADifference) {
  const std::string text = heddle(plan({"--cost", "Conv=5000", "--diff", net()})).out;
  EXPECT_NE(text.find("predicted: 10000 ns on devices"), std::string::npos) << text;
  EXPECT_EQ(heddle(plan({"--cost", "Conv=5000", "--dot"})).status, 2);
}

TEST_F(ToolPlanCollectives, NamesCostsThatAreNone) {
  for (const char* const cost :
       {"Conv", "Conv=-1", "Conv=1+x", "Conv=1e3", "=3", "Conv=1,Conv=2", "Conv=1+-2", "Conv=1+inf", "Conv=1+nan"}) {
    const Outcome outcome = heddle(plan({"--cost", cost}));
    EXPECT_EQ(outcome.status, 2) << cost << outcome.err;
    EXPECT_NE(outcome.err.find("--cost"), std::string::npos) << outcome.err;
  }
}

// A report has the collectives of its run: on devices, and on the host with the time that they took.
TEST(ToolReport, HasCollectives) {
  const std::string sum =
      R"({"name": "y", "type": "AllReduce", "domain": "heddle", "inputs": ["x"], "outputs": ["y"], "attributes": {"communicator": {"string": "world"}})";
  const auto page_of = [&](const std::string& device) {
    const NetFolder folder(net_text("sum", R"("x")", R"("y")", input("x", "4"), sum + device + "}"));
    const Outcome outcome = heddle({"run", folder.net(), "--copies", "auto", "--random", "1", "--report", folder.file("r.html")});
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return read_text(folder / "r.html");
  };
  const std::string host = page_of(""), device = page_of(R"(, "device": "sim:1")");
  for (const std::string& page : {host, device}) {
    EXPECT_NE(page.find("<h2>Collectives</h2>"), std::string::npos);
    EXPECT_NE(page.find("<td>world</td><td class=\"n\">1</td><td class=\"n\">16</td>"), std::string::npos);
  }
  EXPECT_NE(host.find("Collectives were under way for "), std::string::npos);
  EXPECT_EQ(device.find("Collectives were under way for "), std::string::npos);
  EXPECT_NE(device.find("Communicator &quot;world&quot; on sim:1, collectives "), std::string::npos);
}

}  // namespace
}  // namespace heddle::tool_tests
