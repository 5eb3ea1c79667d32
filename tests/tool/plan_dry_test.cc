// heddle plan --dry: plans for a device that this machine does not have.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

std::string product() {
  return net_text("product", R"("x")", R"("y")",
                  input("x", "2, 2") + R"(, {"name": "w", "kind": "constant", "dtype": "f32", "dims": [2, 2], "data": [1, 2, 3, 4]})",
                  node("MatMul", R"("x", "w")", "y"));
}

#ifdef HEDDLE_WITH_CUDA

const Words on_cuda = {"--device", "cuda:0", "--copies", "auto"};

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// Returns a description with all required keys; the value of `key` is replaced.
std::string description(const std::string& key = "", const std::string& value = "") {
  std::string text;
  const std::pair<const char*, const char*> all[] = {{"name", "\"tiny\""},
                                                     {"devices", "1"},
                                                     {"compute_capability", "\"8.0\""},
                                                     {"multiprocessors", "4"},
                                                     {"memory_bytes", "1000000000"},
                                                     {"stream_priorities", "2"},
                                                     {"workspace_bytes", R"({"cublaslt": 1024, "cudnn": 2048})"},
                                                     {"source", "\"a table\""},
                                                     {"date", "\"today\""}};
  for (const auto& [name, number] : all)
    text += (text.empty() ? "{" : ", ") + ("\"" + std::string(name) + "\": ") + (key == name ? value : number);
  return text + "}";
}

// Returns a net of which Unique stays on the host.
std::string with_a_host_step() {
  return net_text("mixed", R"("x")", R"("y", "z")", input("x", "64, 512"),
                  node("Softmax", R"("x")", "s") + ", " + node("Unique", R"("s")", "z") + ", " + node("Relu", R"("s")", "y"));
}

TEST(ToolPlanDry, EveryStepOfARecipeIsOnTheDevice) {
  const TemporaryFolder folder;
  const std::string net = (folder / "lenet.heddle").string();
  heddle_json({"model", "lenet", "-o", net});
  const Json plan = heddle_json(with({"plan", net, "--dry"}, on_cuda));
  EXPECT_TRUE(plan["host_steps"].empty()) << plan["host_steps"];
  EXPECT_NE(plan["devices"]["cuda:0"]["described"].get<std::string>().find("NVIDIA H200, sm_90, not here"), std::string::npos);
  EXPECT_TRUE(plan["devices"]["cpu"]["described"].is_null());
  EXPECT_GT(plan["devices"]["cuda:0"]["peak_bytes"], 0);
  const Outcome outcome = heddle(with({"plan", net, "--dry"}, on_cuda));
  EXPECT_NE(outcome.out.find("host steps 0, between the first and the last step of a device 0\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("cuda:0 streams "), std::string::npos) << outcome.out;
}

TEST(ToolPlanDry, WhatStaysOnTheHostSaysWhy) {
  const NetFolder folder(with_a_host_step());
  const Json plan = heddle_json(with({"plan", folder.net(), "--dry"}, on_cuda));
  ASSERT_EQ(plan["host_steps"].size(), 3u) << plan["host_steps"];
  EXPECT_EQ(plan["host_steps"][1]["type"], "Unique");
  EXPECT_EQ(plan["host_steps"][1]["reason"], R"(runs on "cpu:0": no kernel for it on "cuda:0")");
  // Its neighbours stay on the host as well.
  for (const size_t i : {0, 2})
    EXPECT_NE(plan["host_steps"][i]["reason"].get<std::string>().find("bytes fewer are copied in each run"), std::string::npos);
}

TEST(ToolPlanDry, AFileDescribesAnother) {
  const NetFolder folder(product());
  write_text(folder / "tiny.json", description());
  const auto described = [&] { return heddle_json(with({"plan", folder.net(), "--dry=" + folder.file("tiny.json")}, on_cuda)); };
  EXPECT_NE(described()["devices"]["cuda:0"]["described"].get<std::string>().find("tiny, sm_80, not here"), std::string::npos);
  // The plan keeps to the described memory: the weights do not fit.
  write_text(folder / "tiny.json", description("memory_bytes", "1"));
  EXPECT_EQ(codes(heddle_json(with({"plan", folder.net(), "--dry=" + folder.file("tiny.json")}, on_cuda), 4)), Words{"out-of-memory"});
}

TEST(ToolPlanDry, APlanThatDoesNotFitIsWarnedOf) {
  const NetFolder folder(product());
  write_text(folder / "tiny.json", description("memory_bytes", "600"));
  const Json plan = heddle_json(with({"plan", folder.net(), "--dry=" + folder.file("tiny.json")}, on_cuda));
  ASSERT_EQ(codes(plan), Words{"out-of-memory"}) << plan["diagnostics"];
  EXPECT_EQ(plan["diagnostics"][0]["severity"], "warning");
}

TEST(ToolPlanDry, WhatIsNoDescriptionIsNamed) {
  const NetFolder folder(product());
  const auto refused = [&](const std::string& text, const std::string& word) {
    write_text(folder / "d.json", text);
    const Json object = heddle_json(with({"plan", folder.net(), "--dry=" + folder.file("d.json")}, on_cuda), 2);
    EXPECT_EQ(codes(object), Words{"invalid-argument"}) << text;
    EXPECT_NE(object["diagnostics"][0]["message"].get<std::string>().find(word), std::string::npos) << object;
  };
  refused("", "JSON object");
  refused("{", "JSON object");
  refused("[]", "JSON object");
  const std::pair<const char*, const char*> wrong[] = {{"name", "7"},
                                                       {"devices", "0"},
                                                       {"compute_capability", "\"new\""},
                                                       {"multiprocessors", "-1"},
                                                       {"memory_bytes", "1e3"},
                                                       {"stream_priorities", "{}"},
                                                       {"workspace_bytes", "7"},
                                                       {"source", "\"\""},
                                                       {"date", "null"},
                                                       {"compute_capability", "\"9.0abc\""},
                                                       {"name", "\"x\\u0000y\""}};
  for (const auto& [key, value] : wrong) refused(description(key, value), key == std::string("workspace_bytes") ? "cublaslt" : key);
  EXPECT_EQ(codes(heddle_json(with({"plan", folder.net(), "--dry=" + folder.file("none.json")}, on_cuda), 3)), Words{"file-not-found"});
}

#endif

TEST(ToolPlanDry, NeedsADeviceThatCanBeDescribed) {
  const NetFolder folder(product());
  EXPECT_EQ(codes(heddle_json({"plan", folder.net(), "--dry"}, 2)), Words{"missing-input"});
  EXPECT_EQ(codes(heddle_json({"plan", folder.net(), "--dry", "--device", "nowhere:0"}, 1)), Words{"no-such-device"});
  const Json of_sim = heddle_json({"plan", folder.net(), "--dry", "--device", "sim:0"}, 3);
  EXPECT_EQ(codes(of_sim), Words{"unsupported"});
}

}  // namespace
}  // namespace heddle::tool_tests
