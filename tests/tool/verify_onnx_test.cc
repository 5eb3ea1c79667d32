// heddle verify-onnx: folders that crash, hang and take all memory; signals; tolerances.
#include "onnx_bytes.h"
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

namespace onnx = onnx_bytes;

// A parent of test folders of x → model → y.
struct Folders : TemporaryFolder {
  std::string add(const std::string& name, const std::string& model, const std::vector<float>& x, const std::vector<float>& y) const {
    const std::filesystem::path folder = path() / name, set = folder / "test_data_set_0";
    std::filesystem::create_directories(set);
    write_text(folder / "model.onnx", model);
    write_text(set / "input_0.pb", onnx::tensor("x", {static_cast<int64_t>(x.size())}, x));
    write_text(set / "output_0.pb", onnx::tensor("y", {static_cast<int64_t>(y.size())}, y));
    return folder.string();
  }
  std::string relu(const std::string& name) const { return add(name, onnx::unary("Relu", 2).model(), {-1, 1}, {0, 1}); }
  // Adds a folder with an operator of the plugin whose operators crash the process.
  std::string hostile(const std::string& type) const {
    return add(type, onnx::unary(type, 2, "hostile").model(13, {"hostile"}), {-1, 1}, {0, 1});
  }
  Words arguments(Words more = {}) const {
    Words all = {"verify-onnx", path().string()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST(ToolVerifyOnnx, OutlivesFoldersThatCrashAndHang) {
  const Folders folders;
  const std::string crash = folders.hostile("Segfault"), exit = folders.hostile("Exit"), hang = folders.hostile("ClosesAndStays");
  const std::string first = folders.relu("A"), between = folders.relu("D"), last = folders.relu("Z");
  const Json object = heddle_json(folders.arguments({"--plugin", test_plugin("hostile_crash"), "--timeout", "2"}), 1);
  EXPECT_EQ(object["totals"], Json({{"pass", 3}, {"pass_statistical", 0}, {"fail", 3}, {"unsupported", 0}}));
  EXPECT_EQ(object["folders"].size(), 6u);
  const auto reason = [&](const std::string& folder) { return object["folders"][folder].value("reason", ""); };
  EXPECT_NE(reason(crash).find("crashed: Segmentation fault"), std::string::npos) << reason(crash);
  EXPECT_NE(reason(exit).find("ended the process with exit status 0"), std::string::npos) << reason(exit);
  EXPECT_NE(reason(hang).find("did not finish in 2 s"), std::string::npos) << reason(hang);
  for (const std::string& folder : {first, between, last}) EXPECT_EQ(object["folders"][folder]["status"], "pass") << folder;
  EXPECT_TRUE(object["folders"][crash]["max_abs_error"].is_null()) << "nothing was compared";
}

TEST(ToolVerifyOnnx, OutlivesAFolderThatWritesIntoItsPipe) {
  const Folders folders;
  const std::string noise = folders.hostile("WritesEverywhere"), last = folders.relu("Z");
  const Json object = heddle_json(folders.arguments({"--plugin", test_plugin("hostile_crash"), "--timeout", "5"}), 1);
  EXPECT_EQ(object["folders"][noise].value("reason", ""), "wrote into the tool's own pipe");
  EXPECT_EQ(object["folders"][last]["status"], "pass");
}

TEST(ToolVerifyOnnx, SaysWhenAPluginEndsTheProcessOrNeverReturns) {
  const Folders folders;
  folders.relu("A");
  const auto error = [&](const char* plugin) {
    return heddle_json(folders.arguments({"--plugin", test_plugin(plugin), "--timeout", "1"}), 3)["diagnostics"][0];
  };
  const Json ended = error("hostile_throws_exit"), stays = error("hostile_throws_stay");
  EXPECT_EQ(ended["code"], "plugin-invalid");
  EXPECT_EQ(ended["message"], "while plugins were loaded, one of them ended the process with exit status 3 instead of returning");
  EXPECT_EQ(stays["code"], "plugin-invalid");
  EXPECT_EQ(stays["message"], "the plugins were not loaded within the --timeout");
}

TEST(ToolVerifyOnnx, AFolderThatHasNoMemoryIsNamed) {
  const Folders folders;
  // A file of a hundred bytes declares 4 GiB.
  const onnx::Graph large = onnx::Graph()
                                .input(onnx::value("x", {2}))
                                .constant(onnx::ints("extent", {int64_t{1} << 30}))
                                .node(onnx::node("Expand", {"m", "extent"}, {"y"}))
                                .node(onnx::node("ReduceMax", {"x"}, {"m"}, "", onnx::int_attribute("keepdims", 1)))
                                .output(onnx::value("y", {int64_t{1} << 30}));
  const std::string greedy = folders.add("large", large.model(), {-1, 1}, {0, 1}), next = folders.relu("next");
  const NetFolder probe(two_outputs());
  if (heddle_json({"run", probe.net(), "--random", "1", "--repeat", "2"})["steady_state_allocations"]["heap"].is_null())
    GTEST_SKIP() << "sanitizers need more address space than can be limited";
  const Outcome outcome = Tool(folders.arguments({"--json"})).within_memory(rlim_t{3} << 30).run();
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  const Json object = checked_object(outcome, "verify_onnx.json");
  EXPECT_EQ(object["folders"][greedy]["status"], "fail");
  EXPECT_NE(object["folders"][greedy].value("reason", "").find("error[out-of-memory]"), std::string::npos) << object["folders"];
  EXPECT_EQ(object["folders"][next]["status"], "pass");
}

TEST(ToolVerifyOnnx, SignalsEndItWithWhatWasDone) {
  HEDDLE_NEEDS_TERMINAL();
  const Folders folders;
  const std::string done = folders.relu("A");
  folders.hostile("ClosesAndStays");
  folders.relu("Z");
  for (const int signal : {SIGTERM, SIGINT}) {
    for (const bool json : {true, false}) {
      Tool tool(folders.arguments(json ? Words{"--plugin", test_plugin("hostile_crash"), "--json"}
                                       : Words{"--plugin", test_plugin("hostile_crash")}));
      tool.on_terminal().interrupt(signal, [](const std::string& err, pid_t) { return err.find("ClosesAndStays") != std::string::npos; });
      const Outcome outcome = tool.run();
      EXPECT_EQ(outcome.status, 128 + signal) << outcome.err;
      EXPECT_NE(outcome.err.find("[interrupted]"), std::string::npos) << outcome.err;
      if (json) {
        const Json object = checked_object(outcome, "verify_onnx.json");
        EXPECT_EQ(codes(object), Words{"interrupted"});
        EXPECT_EQ(object["folders"].size(), 1u) << object["folders"];
        EXPECT_EQ(object["folders"][done]["status"], "pass");
        EXPECT_EQ(object["totals"]["pass"], 1);
      } else {
        EXPECT_NE(outcome.out.find("pass             \"A\""), std::string::npos) << outcome.out;
        EXPECT_NE(outcome.out.find("1 pass, 0 pass-statistical, 0 fail, 0 unsupported, 2 not done"), std::string::npos) << outcome.out;
      }
    }
  }
}

TEST(ToolVerifyOnnx, TolerancesComeFromDataJson) {
  const Folders folders;
  const std::string folder = folders.add("relu", onnx::unary("Relu", 2).model(), {-1, 1}, {0, 1.1f});
  const auto status = [&](const std::string& data, Words more = {}) {
    write_text(folder + "/data.json", data);
    Words arguments = folders.arguments({"--json"});
    arguments.insert(arguments.end(), more.begin(), more.end());
    return checked_object(heddle(arguments), "verify_onnx.json")["folders"][folder];
  };
  EXPECT_EQ(status("{}")["status"], "fail");
  EXPECT_EQ(status(R"({"model_name": "relu", "rtol": 0.2})")["status"], "pass");
  EXPECT_EQ(status(R"({"rtol": 0, "atol": 0.2})")["status"], "pass");
  EXPECT_EQ(status(R"({"rtol": 0, "atol": 0.2})")["atol"], 0.2);
  EXPECT_EQ(status(R"({"rtol": 0, "atol": 0.2})", {"--atol", "0.05"})["status"], "fail") << "the command line comes first";
  EXPECT_EQ(status(R"({"rtol": 0, "atol": 0})", {"--rtol", "0.2"})["status"], "pass");
  for (const char* bad : {"", "[]", "{", R"({"rtol": "0.2"})", R"({"atol": -1})", R"({"rtol": null})"}) {
    const Json verdict = status(bad);
    EXPECT_EQ(verdict["status"], "fail") << bad;
    EXPECT_NE(verdict.value("reason", "").find("data.json"), std::string::npos) << bad << verdict;
  }
}

TEST(ToolVerifyOnnx, TheDefaultFollowsTheScaleOfTheTensor) {
  const Folders folders;
  const std::string scaled = folders.add("scaled", onnx::unary("Relu", 3).model(), {1000, 1, 0}, {1000, 1, 0.009f});
  const std::string small = folders.add("small", onnx::unary("Relu", 2).model(), {1e-6f, 0}, {1e-6f, 9e-8f});
  const std::string zeros = folders.add("zeros", onnx::unary("Relu", 2).model(), {-1, 9e-8f}, {0, 0});
  const Json object = heddle_json(folders.arguments(), 1);
  EXPECT_EQ(object["folders"][scaled]["status"], "pass") << "0.009 is under 1e-5 of 1000";
  EXPECT_NEAR(object["folders"][scaled]["atol"].get<double>(), 0.01, 1e-9);
  EXPECT_EQ(object["folders"][scaled]["rtol"], 1e-3);
  EXPECT_EQ(object["folders"][small]["status"], "fail") << "9e-8 is a tenth of the tensor's largest value";
  EXPECT_EQ(object["folders"][zeros]["status"], "pass");
  const Outcome text = heddle(folders.arguments());
  EXPECT_NE(text.out.find("pass             \"scaled\"  max abs 0.009  rtol 0.001  atol 0.01"), std::string::npos) << text.out;
}

TEST(ToolVerifyOnnx, ANewerOpsetIsUnsupported) {
  const Folders folders;
  const std::string newer = folders.add("newer", onnx::unary("Relu", 2).model(9000), {-1, 1}, {0, 1}), known = folders.relu("known");
  const Json object = heddle_json(folders.arguments());
  EXPECT_EQ(object["folders"][newer]["status"], "unsupported");
  EXPECT_NE(object["folders"][newer].value("reason", "").find("opset 9000"), std::string::npos);
  EXPECT_EQ(object["folders"][known]["status"], "pass");
  EXPECT_EQ(heddle_json(folders.arguments({"--strict"}), 1)["totals"]["unsupported"], 1);
}

}  // namespace
}  // namespace heddle::tool_tests
