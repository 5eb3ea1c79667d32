// heddle verify-onnx and bench.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// A copy of one test folder, whose expected output can be changed.
struct OnnxFolder : TemporaryFolder {
  explicit OnnxFolder(const std::string& name) {
    std::filesystem::copy(onnx_data / "node" / name, path() / name, std::filesystem::copy_options::recursive);
    folder = (path() / name).string();
  }
  // Adds to the last element of the expected output, f32 in raw_data at the end of the file.
  void change_expectation(float by) const {
    const std::string file = folder + "/test_data_set_0/output_0.pb";
    std::string bytes = read_text(file);
    // The dims, type and raw data come first; a name may precede them, nothing follows.
    float last = 0;
    std::memcpy(&last, bytes.data() + bytes.size() - 4, 4);
    last += by;
    std::memcpy(bytes.data() + bytes.size() - 4, &last, 4);
    write_text(file, bytes);
  }
  std::string folder;
};

TEST(ToolVerifyOnnx, ComparesFoldersAndParents) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const OnnxFolder relu("test_relu");
  std::filesystem::copy(onnx_data / "node/test_add", relu / "test_add", std::filesystem::copy_options::recursive);
  const Json object = heddle_json({"verify-onnx", relu.path().string()});
  EXPECT_EQ(object["totals"], Json({{"pass", 2}, {"pass_statistical", 0}, {"fail", 0}, {"unsupported", 0}}));
  EXPECT_EQ(object["folders"][relu.folder]["status"], "pass");
  EXPECT_EQ(heddle_json({"verify-onnx", relu.folder})["totals"]["pass"], 1);
  relu.change_expectation(0.5f);
  const Json failed = heddle_json({"verify-onnx", relu.path().string()}, 1);
  EXPECT_EQ(failed["folders"][relu.folder]["status"], "fail");
  EXPECT_EQ(failed["totals"]["pass"], 1);
  const TemporaryFolder empty;
  EXPECT_EQ(heddle({"verify-onnx", empty.path().string()}).status, 2);
}

// test_add and test_if run whole on the device; test_loop11, whose value grows, is reported as unsupported, or runs on the host where
// copies are made.
TEST(ToolVerifyOnnx, RunsOnADevice) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const OnnxFolder add("test_add");
  const Words words = {"verify-onnx", add.folder, "--device", "sim:1", "--copies", "strict", "--streams", "2"};
  EXPECT_EQ(heddle_json(words)["totals"]["pass"], 1);
  Words json = words;
  json.push_back("--json");
  EXPECT_EQ(Tool(json).set("HEDDLE_SIM_FAULTS", "late").run().status, 1);
  const OnnxFolder branches("test_if"), grows("test_loop11");
  const auto on_sim = [](const OnnxFolder& of, const char* copies) {
    return heddle_json({"verify-onnx", of.folder, "--device", "sim:0", "--copies", copies});
  };
  EXPECT_EQ(on_sim(branches, "strict")["totals"]["pass"], 1);
  EXPECT_EQ(on_sim(grows, "strict")["totals"]["unsupported"], 1);
  EXPECT_EQ(on_sim(grows, "auto")["totals"]["pass"], 1);
}

TEST(ToolVerifyOnnx, TolerancesAreOptions) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const OnnxFolder folder("test_relu");
  folder.change_expectation(0.01f);
  EXPECT_EQ(heddle({"verify-onnx", folder.folder}).status, 1);
  EXPECT_EQ(heddle({"verify-onnx", folder.folder, "--atol", "0.02"}).status, 0);
  EXPECT_EQ(heddle({"verify-onnx", folder.folder, "--rtol", "1000"}).status, 0);
  EXPECT_EQ(heddle({"verify-onnx", folder.folder, "--rtol", "0", "--atol", "0"}).status, 1);
  EXPECT_EQ(heddle({"verify-onnx", folder.folder, "--rtol", "-1"}).status, 2);
}

TEST(ToolVerifyOnnx, StrictCountsTheUnsupported) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const OnnxFolder folder("test_relu");
  const TemporaryFolder no_plugins;
  const auto run = [&](Words more) {
    Words arguments = {"verify-onnx", folder.folder, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Tool(arguments).set("HEDDLE_PLUGIN_DIR", no_plugins.path().string()).run();
  };
  const Outcome lenient = run({});
  EXPECT_EQ(lenient.status, 0);
  EXPECT_EQ(checked_object(lenient, "verify_onnx.json")["totals"]["unsupported"], 1);
  EXPECT_EQ(run({"--strict"}).status, 1);
}

TEST(ToolVerifyOnnx, RandomOperatorsAreHeldToTheirMoments) {
  if (!std::filesystem::exists(onnx_data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const OnnxFolder folder("test_bernoulli_double");
  EXPECT_EQ(heddle_json({"verify-onnx", folder.folder})["folders"][folder.folder]["status"], "pass-statistical");
  // The expected values are ten zeros and ones: with a last one of 1000 they are no draw of the same distribution.
  const std::string file = folder.folder + "/test_data_set_0/output_0.pb";
  std::string bytes = read_text(file);
  const double thousand = 1000;
  std::memcpy(bytes.data() + bytes.size() - 8, &thousand, 8);
  write_text(file, bytes);
  EXPECT_EQ(heddle_json({"verify-onnx", folder.folder}, 1)["folders"][folder.folder]["status"], "fail");
}

TEST(ToolBench, MeasuresWholeAndByOperator) {
  const NetFolder folder(two_outputs());
  const Json object = heddle_json({"bench", folder.net(), "--threads", "1,2", "--repeat", "30", "--warmup", "1"});
  ASSERT_EQ(object["runs"].size(), 2u);
  EXPECT_EQ(object["runs"][0]["threads"], 1);
  EXPECT_EQ(object["runs"][1]["threads"], 2);
  EXPECT_EQ(object["runs"][0]["latency_ns"]["runs"], 30);
  EXPECT_FALSE(object["operators"].empty());
  for (const Json& one : object["operators"]) EXPECT_EQ(one["flops"], 6) << one["name"] << ": one operation for each element";
  EXPECT_EQ(object["operators"][0]["bytes"], 2 * 6 * 4);
  EXPECT_TRUE(object["comparison"].is_null());
  for (const char* threads : {"0", "-1", "65", "1,65"}) {
    const auto refused = heddle({"bench", folder.net(), "--threads", threads});
    EXPECT_EQ(refused.status, 2) << threads;
    EXPECT_NE(refused.err.find("--threads"), std::string::npos) << refused.err;
  }
  const NetFolder open(symbolic());
  EXPECT_EQ(heddle({"bench", open.net()}).status, 2);
  EXPECT_EQ(heddle({"bench", open.net(), "--symbol", "N=2"}).status, 0);
  EXPECT_EQ(heddle({"bench", open.net(), "--shape", "x=2x3"}).status, 0);
}

TEST(ToolBench, DrawsHowOftenWhichTimeWasTaken) {
  const NetFolder folder(two_outputs());
  const Words words = {"bench", folder.net(), "--repeat", "50", "--threads", "1,2", "--svg", folder.file("b.svg")};
  const Json runs = heddle_json(words)["runs"];
  const std::string svg = read_text(folder / "b.svg");
  for (const Json& run : runs) {
    int64_t count = run["histogram"]["above"];
    for (const Json& one : run["histogram"]["counts"]) count += one.get<int64_t>();
    EXPECT_EQ(count, 50);
    EXPECT_LE(run["histogram"]["from_ns"].get<double>(), run["latency_ns"]["min"].get<double>() + 1);
    EXPECT_NE(svg.find(">" + (run["threads"] == 1 ? "1 thread: median " : run["threads"].dump() + " threads: median ")), std::string::npos);
  }
  EXPECT_NE(heddle(words).out.find("#####"), std::string::npos);
  EXPECT_EQ(codes(heddle_json({"bench", folder.net(), "--svg", folder.net()}, 2)), Words{"invalid-argument"}) << "the net itself";
}

TEST(ToolBench, ComparesWithAnOlderResult) {
  const NetFolder folder(two_outputs());
  write_text(folder / "old.json", heddle({"bench", folder.net(), "--json"}).out);
  Json old = Json::parse(read_text(folder / "old.json"));
  const Json object = heddle_json({"bench", folder.net(), "--compare", folder.file("old.json"), "--threads", "1,2"});
  ASSERT_EQ(object["comparison"].size(), 2u);
  EXPECT_EQ(object["comparison"][0]["old_median_ns"], old["runs"][0]["latency_ns"]["median"]);
  EXPECT_GT(object["comparison"][0]["ratio"].get<double>(), 0.0);
  EXPECT_TRUE(object["comparison"][1]["ratio"].is_null()) << "the old result has no two threads";
  for (const char* hostile : {"", "[]", R"({"command": "bench", "runs": 1})", R"({"command": 3, "runs": []})"}) {
    write_text(folder / "old.json", hostile);
    EXPECT_EQ(codes(heddle_json({"bench", folder.net(), "--compare", folder.file("old.json")}, 3)), Words{"syntax"}) << hostile;
  }
  write_text(folder / "old.json", R"({"command": "bench", "runs": [1, {}, {"threads": 1, "latency_ns": {"median": "x"}}]})");
  EXPECT_TRUE(heddle_json({"bench", folder.net(), "--compare", folder.file("old.json")})["comparison"][0]["ratio"].is_null());
}

}  // namespace
}  // namespace heddle::tool_tests
