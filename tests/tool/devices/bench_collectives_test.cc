// heddle bench --collectives.
#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

// This is what goes over the slowest way, for each byte of the whole result, as nccl-tests define it.
double ways_of(const std::string& type, double members) {
  if (type == "heddle::AllReduce") return 2 * (members - 1) / members;
  return type == "heddle::Broadcast" || type == "heddle::Reduce" ? 1 : (members - 1) / members;
}

void expect_measured(const std::string& device, const std::string& kernel) {
  SCOPED_TRACE(device);
  Words words = {"bench", "--json", "--collectives", "--members", "1,2", "--sizes", "64,4K", "--repeat", "3", "--warmup", "1"};
  if (!device.empty()) words.insert(words.end(), {"--device", device});
  const Outcome outcome = Tool(words).set("HEDDLE_CUDA_STANDIN", test_plugin("cuda_standin")).set("HEDDLE_CUDA_CACHE", "off").run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  ASSERT_EQ(object["collectives"].size(), 7u * 2 * 2);
  std::set<std::string> operators;
  for (const Json& one : object["collectives"]) {
    const auto type = one["operator"].get<std::string>();
    operators.insert(type);
    const auto median_ns = one["latency_ns"]["median"].get<double>();
    EXPECT_GT(median_ns, 0);
    EXPECT_EQ(one["kernel"].get<std::string>().rfind(kernel, 0), 0u) << one["kernel"];
    if (type == "heddle::Barrier") {
      EXPECT_TRUE(one["algorithm_bandwidth"].is_null());
      continue;
    }
    const auto members = one["members"].get<double>(), rate = one["algorithm_bandwidth"].get<double>();
    const double bytes = one["bytes"].get<double>() * (type == "heddle::AllGather" ? members : 1);
    EXPECT_NEAR(rate * median_ns / 1e9, bytes, 0.01 * bytes) << type;
    EXPECT_NEAR(one["bus_bandwidth"].get<double>(), rate * ways_of(type, members), 1e-6 * rate) << type;
  }
  EXPECT_EQ(operators.size(), 7u);
}

TEST(ToolBench, MeasuresCollectives) {
  expect_measured("", "cpu:");
  expect_measured("sim", "cpu:");
#ifdef HEDDLE_WITH_CUDA
  expect_measured("cuda", "nccl:");
#endif
}

TEST(ToolBench, NeedsANetOrCollectives) {
  EXPECT_EQ(codes(heddle_json({"bench"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json({"bench", "net.heddle", "--collectives"}, 2)), Words{"unknown-option"});
  EXPECT_EQ(codes(heddle_json({"bench", "--collectives", "--threads", "2"}, 2)), Words{"unknown-option"});
  EXPECT_EQ(codes(heddle_json({"bench", "--collectives", "--sizes", "big"}, 2)), Words{"invalid-argument"});
}

}  // namespace
}  // namespace heddle::tool_tests
