// The tool with a device: its output and its exit status.
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "device_support.h"

namespace heddle {
namespace {

using namespace testing_devices;
using Json = nlohmann::json;

// x -> a on the device -> b on the host -> y on the device.
std::string text_of_net() {
  const std::string device = device_name(0);
  return R"({
  "heddle": 1, "name": "mixed", "inputs": ["x"], "outputs": ["y"], "operator_sets": [{"domain": "", "version": 17}],
  "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4, 4]}],
  "nodes": [
    {"name": "a", "type": "Relu", "device": ")" +
         device + R"(", "inputs": ["x"], "outputs": ["a"]},
    {"name": "b", "type": "Neg", "inputs": ["a"], "outputs": ["b"]},
    {"name": "y", "type": "Add", "device": ")" +
         device + R"(", "inputs": ["a", "b"], "outputs": ["y"]}
  ]
})";
}

class DeviceTool : public DeviceTest {
 protected:
  void SetUp() override {
    net_ = ::testing::TempDir() + "device_tool_" + std::to_string(::getpid()) + ".json";
    std::ofstream(net_) << text_of_net();
  }
  void TearDown() override { std::filesystem::remove(net_); }

  // Returns the exit status; `out` is stdout as JSON.
  int tool(const std::string& arguments, Json* out) {
    const std::string& built = testing::build_folder();
    const std::string line =
        built + "/bin/heddle " + arguments + " --json --plugin " + built + "/lib/cpu.so --plugin " + kind().library + " 2>/dev/null";
    std::FILE* pipe = ::popen(line.c_str(), "r");
    std::string text;
    std::array<char, 4096> buffer;
    while (const size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe)) text.append(buffer.data(), n);
    const int status = ::pclose(pipe);
    *out = Json::parse(text, nullptr, false);
    EXPECT_FALSE(out->is_discarded()) << line << "\n" << text;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::string net_;
};

HEDDLE_DEVICE_KINDS(DeviceTool);

TEST_P(DeviceTool, RunsOnADevice) {
  Json out;
  ASSERT_EQ(tool("run " + net_ + " --random 1 --copies auto --streams 2 --repeat 3", &out), 0) << out.dump(1);
  ASSERT_TRUE(out["devices"].contains(device_name(0))) << out.dump(1);
  EXPECT_GT(out["devices"][device_name(0)]["planned_peak_bytes"], 0);
  EXPECT_EQ(out["devices"][device_name(0)]["planned_peak_bytes"], out["devices"][device_name(0)]["measured_peak_bytes"]);
  EXPECT_EQ(out["devices"]["cpu"]["planned_peak_bytes"], out["devices"]["cpu"]["measured_peak_bytes"]);
  EXPECT_EQ(out["copies"]["count"], 4) << "x there, a back, b there, y back";
  EXPECT_EQ(out["copies"]["bytes"], 4 * 64);
  EXPECT_TRUE(out["diagnostics"].empty());
  const Json mixed = out["outputs"];
  ASSERT_EQ(tool("run " + net_ + " --random 1 --device " + kind().name + " --copies auto", &out), 0) << out.dump(1);
  EXPECT_EQ(out["outputs"], mixed);
  EXPECT_EQ(tool("run " + net_ + " --random 1 --device " + device_name(kind().devices), &out), 1);
  EXPECT_EQ(out["diagnostics"][0]["code"], "no-such-device");
}

TEST_P(DeviceTool, ComparesDevices) {
  Json out;
  ASSERT_EQ(tool("run " + net_ + " --random 1 --device cpu --copies auto --compare-device " + kind().name, &out), 0) << out.dump(1);
  EXPECT_EQ(out["comparison"]["device"], kind().name);
  EXPECT_EQ(out["comparison"]["outputs"]["y"]["equal"], true);
  EXPECT_EQ(out["comparison"]["outputs"]["y"]["max_abs_error"], 0);
  ASSERT_EQ(tool("run " + net_ + " --random 1 --copies auto", &out), 0);
  EXPECT_TRUE(out["comparison"].is_null());
  EXPECT_EQ(tool("run " + net_ + " --random 1 --copies auto --compare-device " + device_name(kind().devices), &out), 1);
  EXPECT_EQ(out["diagnostics"][0]["code"], "no-such-device");
}

TEST_P(DeviceTool, OtherResultsOnAnotherDeviceFail) {
  HEDDLE_DEVICE_NEEDS(misbehaves);
  std::ofstream(net_) << R"({"heddle": 1, "name": "two", "inputs": ["x"], "outputs": ["y", "z"],
    "operator_sets": [{"domain": "", "version": 17}], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4, 4]}],
    "nodes": [{"name": "y", "type": "MatMul", "inputs": ["x", "x"], "outputs": ["y"]},
              {"name": "z", "type": "Add", "inputs": ["x", "x"], "outputs": ["z"]}]})";
  Json out;
  const std::string line = "run " + net_ + " --random 1 --copies auto --compare-device " + kind().name;
  ASSERT_EQ(tool(line, &out), 0) << out.dump(1);
  const DeviceSetting wrong("WRONG", "MatMul");
  ASSERT_EQ(tool(line, &out), 1) << out.dump(1);
  EXPECT_EQ(out["status"], "failed");
  ASSERT_EQ(out["diagnostics"].size(), 1u);
  EXPECT_EQ(out["diagnostics"][0]["code"], "comparison-failed");
  EXPECT_NE(out["diagnostics"][0]["message"].get<std::string>().find("\"y\""), std::string::npos);
  EXPECT_EQ(out["diagnostics"][0]["message"].get<std::string>().find("\"z\""), std::string::npos);
  EXPECT_EQ(out["comparison"]["device"], kind().name);
  EXPECT_EQ(out["comparison"]["outputs"]["y"]["equal"], false);
  EXPECT_NEAR(out["comparison"]["outputs"]["y"]["max_abs_error"], 0.5, 1e-6);
  EXPECT_EQ(out["comparison"]["outputs"]["z"]["equal"], true);
  EXPECT_FALSE(out["outputs"].is_null()) << "what came out on the first device is told nevertheless";
}

TEST_P(DeviceTool, CheckNamesEveryMisplacementAtOnce) {
  const auto node = [](const std::string& name, const std::string& from, const std::string& device) {
    return R"({"name": ")" + name + R"(", "type": "Relu", "device": ")" + device + R"(", "inputs": [")" + from + R"("], "outputs": [")" +
           name + "\"]}";
  };
  std::ofstream(net_) << R"({"heddle": 1, "name": "misplaced", "inputs": ["x"], "outputs": ["b", "c", "d"],
    "operator_sets": [{"domain": "", "version": 17}], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4]}], "nodes": [)"
                      << node("a", "x", device_name(0)) + ", " + node("b", "a", "cpu") + ", " +
                             node("c", "a", device_name(kind().devices)) + ", " + node("d", "x", "nowhere")
                      << "]}";
  Json out;
  ASSERT_EQ(tool("check " + net_ + " --copies strict", &out), 1) << out.dump(1);
  std::map<std::string, std::string> found;
  for (const Json& d : out["diagnostics"]) found[d["operator"]] = d["code"];
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"b", "wrong-device"}, {"c", "no-such-device"}, {"d", "no-such-device"}}));
  EXPECT_EQ(out["diagnostics"].size(), 3u) << out.dump(1);
}

// The operator Fault has a kernel for the device alone.
TEST_P(DeviceTool, CheckNamesEveryMissingKernelWhereverItIs) {
  HEDDLE_DEVICE_NEEDS(has_own_operators);
  const auto fault = [](const std::string& name, const std::string& from) {
    return R"({"name": ")" + name + R"(", "type": "Fault", "domain": ")" + kind().name + R"(", "inputs": [")" + from +
           R"("], "outputs": [")" + name + "\"]}";
  };
  const auto net = [](const std::string& name, const std::string& outputs, const std::string& nodes, const std::string& more = "") {
    return R"({"heddle": 1, "name": ")" + name + R"(", "inputs": ["x")" + (more.empty() ? "" : ", \"c\"") + R"(], "outputs": [)" + outputs +
           R"(], "operator_sets": [{"domain": "", "version": 17}],
           "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4]})" +
           more + R"(], "nodes": [)" + nodes + "]}";
  };
  const std::string then_branch = net("then", R"("inner")", fault("inner", "x"));
  const std::string else_branch = net("else", R"("a")", R"({"name": "a", "type": "Abs", "inputs": ["x"], "outputs": ["a"]})");
  const auto branching = [](const std::string& then, const std::string& otherwise) {
    return R"({"name": "if", "type": "If", "inputs": ["c", "x"], "outputs": ["z"], "attributes": {"then_branch": {"net": )" + then +
           R"(}, "else_branch": {"net": )" + otherwise + "}}}";
  };
  const std::string branch = branching(then_branch, else_branch);
  const std::string cond = R"(, {"name": "c", "kind": "input", "dtype": "bool", "dims": []})";
  std::ofstream(net_) << net("top", R"("f2", "z")", fault("f1", "x") + ", " + fault("f2", "f1") + ", " + branch, cond);
  Json out;
  ASSERT_EQ(tool("check " + net_, &out), 1) << out.dump(1);
  std::vector<std::string> operators;
  for (const Json& d : out["diagnostics"]) {
    EXPECT_EQ(d["code"], "no-kernel") << d.dump(1);
    EXPECT_EQ(d["net"], "top");
    EXPECT_EQ(d["type"], kind().name + "::Fault");
    operators.push_back(d["operator"]);
  }
  EXPECT_EQ(operators, (std::vector<std::string>{"f1", "f2"}));
  EXPECT_EQ(tool("run " + net_ + " --random 1", &out), 3);
  EXPECT_EQ(out["diagnostics"][0]["code"], "no-kernel");
  // In one branch alone it is a warning, and a run that takes the other branch is right. run and check report the same.
  std::ofstream(net_) << net("top", R"("z")", branch, cond);
  for (const bool checks : {false, true}) {
    ASSERT_EQ(tool(checks ? "check " + net_ : "run " + net_ + " --random 1", &out), 0) << out.dump(1);
    ASSERT_EQ(out["diagnostics"].size(), 1u) << out.dump(1);
    const Json& said = out["diagnostics"][0];
    EXPECT_EQ(said["severity"], "warning");
    EXPECT_EQ(said["operator"], "if/inner");
    EXPECT_EQ(said["code"], "no-kernel");
    EXPECT_NE(said["message"].get<std::string>().find("in subnet \"then\""), std::string::npos);
  }
  // In both branches it is an error before anything runs.
  std::ofstream(net_) << net("top", R"("z")", branching(then_branch, net("else", R"("other")", fault("other", "x"))), cond);
  ASSERT_EQ(tool("run " + net_ + " --random 1", &out), 3) << out.dump(1);
  const Json said = out["diagnostics"];
  ASSERT_EQ(tool("check " + net_, &out), 1);
  EXPECT_EQ(out["diagnostics"], said);
  ASSERT_FALSE(said.empty());
  for (const Json& d : said) EXPECT_EQ(d["code"], "no-kernel") << d.dump(1);
  EXPECT_EQ(said[0]["severity"], "error");
  EXPECT_EQ(said[0]["operator"], "if/inner");
  // It is reported together with a wrong shape.
  std::ofstream(net_) << net("top", R"("f1", "m")",
                             fault("f1", "x") + R"(, {"name": "m", "type": "Concat", "inputs": ["x", "f1"], "outputs": ["m"],
                                                                    "attributes": {"axis": {"int": 7}}})");
  ASSERT_EQ(tool("check " + net_, &out), 1);
  std::vector<std::string> codes;
  for (const Json& d : out["diagnostics"]) codes.push_back(d["code"]);
  EXPECT_EQ(codes, (std::vector<std::string>{"shape-mismatch", "no-kernel"})) << out.dump(1);
  // The device has a kernel.
  std::ofstream(net_) << net("top", R"("f1")", fault("f1", "x"));
  EXPECT_EQ(tool("check " + net_ + " --device " + kind().name + " --copies auto", &out), 0) << out.dump(1);
}

TEST_P(DeviceTool, CopiesAreStrictWarnedOfOrAutomatic) {
  Json out;
  EXPECT_EQ(tool("run " + net_ + " --random 1 --copies strict", &out), 3);
  EXPECT_EQ(out["diagnostics"][0]["code"], "wrong-device");
  EXPECT_EQ(tool("run " + net_ + " --random 1", &out), 0);
  ASSERT_EQ(out["diagnostics"].size(), 2u);
  EXPECT_EQ(out["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(tool("run " + net_ + " --random 1 --werror", &out), 1);
  EXPECT_EQ(tool("run " + net_ + " --random 1 --copies auto --werror", &out), 0);
}

TEST_P(DeviceTool, PlanShowsCopiesStreamsAndArenas) {
  Json out;
  ASSERT_EQ(tool("plan " + net_ + " --copies auto --streams 2", &out), 0) << out.dump(1);
  ASSERT_EQ(out["copies"].size(), 4u);
  EXPECT_EQ(out["copies"][0]["from"], "cpu:0");
  EXPECT_EQ(out["copies"][0]["to"], device_name(0));
  EXPECT_EQ(out["copies"][0]["bytes"], 64);
  EXPECT_GT(out["devices"][device_name(0)]["peak_bytes"], 0);
  EXPECT_EQ(out["devices"][device_name(0)]["peak_bytes"], out["devices"][device_name(0)]["lower_bound_bytes"]);
  bool fenced = false;
  for (const Json& step : out["steps"]) fenced = fenced || step["type"] == "Fence";
  EXPECT_TRUE(fenced);
}

TEST_P(DeviceTool, ListsDevicesAndWhyThereAreNone) {
  HEDDLE_DEVICE_NEEDS(has_settings);
  Json out;
  ASSERT_EQ(tool("devices", &out), 0);
  std::vector<Json> found;
  for (const Json& device : out["devices"])
    if (device["backend"] == kind().name) found.push_back(device);
  ASSERT_EQ(found.size(), static_cast<size_t>(kind().devices)) << out.dump(1);
  EXPECT_EQ(found[0]["name"], device_name(0));
  EXPECT_EQ(found[0]["memory_bytes"], kind().memory_bytes);
  // Checks only this kind: whether the machine has others does not matter.
  const auto reasons = [&] {
    std::vector<Json> all;
    for (const Json& missing : out["unavailable"])
      if (missing["backend"] == kind().name) all.push_back(missing["reason"]);
    return all;
  };
  EXPECT_TRUE(reasons().empty());
  const DeviceSetting none("DEVICES", "0");
  ASSERT_EQ(tool("devices", &out), 0);
  ASSERT_EQ(reasons().size(), 1u);
  EXPECT_EQ(reasons()[0], said_of_none(none));
}

TEST_P(DeviceTool, BenchMeasuresOnADevice) {
  Json out;
  ASSERT_EQ(tool("bench " + net_ + " --device " + kind().name + " --copies auto --repeat 2 --warmup 1", &out), 0) << out.dump(1);
  EXPECT_EQ(out["runs"][0]["latency_ns"]["runs"], 2);
  bool there = false;
  for (const Json& one : out["operators"]) there = there || one["device"] == device_name(0);
  EXPECT_TRUE(there) << out.dump(1);
  EXPECT_EQ(tool("bench " + net_ + " --device " + device_name(kind().devices), &out), 1);
}

TEST_P(DeviceTool, DumpsWhatLiesOnTheDevice) {
  Json out;
  const std::filesystem::path folder = net_ + ".dump";
  ASSERT_EQ(tool("run " + net_ + " --random 1 --copies auto --check-numerics --dump " + folder.string(), &out), 0) << out.dump(1);
  EXPECT_TRUE(std::filesystem::exists(folder / "a.npy"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle
