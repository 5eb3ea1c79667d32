// The tool with a device: what it prints, and how it exits.
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

constexpr const char* net_text = R"({
  "heddle": 1, "name": "mixed", "inputs": ["x"], "outputs": ["y"], "operator_sets": [{"domain": "", "version": 17}],
  "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4, 4]}],
  "nodes": [
    {"name": "a", "type": "Relu", "device": "proto:0", "inputs": ["x"], "outputs": ["a"]},
    {"name": "b", "type": "Neg", "inputs": ["a"], "outputs": ["b"]},
    {"name": "y", "type": "Add", "device": "proto:0", "inputs": ["a", "b"], "outputs": ["y"]}
  ]
})";

class DeviceTool : public ::testing::Test {
 protected:
  void SetUp() override {
    net_ = ::testing::TempDir() + "device_tool_" + std::to_string(::getpid()) + ".json";
    std::ofstream(net_) << net_text;
  }
  void TearDown() override { std::filesystem::remove(net_); }

  // Exit status; stdout as JSON.
  int tool(const std::string& arguments, Json* out) {
    const std::string line = HEDDLE_BINARY_DIR "/bin/heddle " + arguments +
                             " --json --plugin " HEDDLE_BINARY_DIR "/lib/cpu.so --plugin " HEDDLE_BINARY_DIR
                             "/lib/test/proto.so 2>/dev/null";
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

TEST_F(DeviceTool, RunsOnADevice) {
  Json out;
  ASSERT_EQ(tool("run " + net_ + " --random 1 --copies auto --streams 2 --repeat 3", &out), 0) << out.dump(1);
  ASSERT_TRUE(out["devices"].contains("proto:0")) << out.dump(1);
  EXPECT_GT(out["devices"]["proto:0"]["planned_peak_bytes"], 0);
  EXPECT_EQ(out["devices"]["proto:0"]["planned_peak_bytes"], out["devices"]["proto:0"]["measured_peak_bytes"]);
  EXPECT_EQ(out["devices"]["cpu"]["planned_peak_bytes"], out["devices"]["cpu"]["measured_peak_bytes"]);
  EXPECT_EQ(out["copies"]["count"], 4) << "x there, a back, b there, y back";
  EXPECT_EQ(out["copies"]["bytes"], 4 * 64);
  EXPECT_TRUE(out["diagnostics"].empty());
  const Json mixed = out["outputs"];
  ASSERT_EQ(tool("run " + net_ + " --random 1 --device proto --copies auto", &out), 0) << out.dump(1);
  EXPECT_EQ(out["outputs"], mixed);
  EXPECT_EQ(tool("run " + net_ + " --random 1 --device proto:7", &out), 1);
  EXPECT_EQ(out["diagnostics"][0]["code"], "no-such-device");
}

TEST_F(DeviceTool, ComparesDevices) {
  Json out;
  ASSERT_EQ(tool("run " + net_ + " --random 1 --device cpu --copies auto --compare-device proto", &out), 0) << out.dump(1);
  EXPECT_EQ(out["comparison"]["device"], "proto");
  EXPECT_EQ(out["comparison"]["outputs"]["y"]["equal"], true);
  EXPECT_EQ(out["comparison"]["outputs"]["y"]["max_abs_error"], 0);
  ASSERT_EQ(tool("run " + net_ + " --random 1 --copies auto", &out), 0);
  EXPECT_TRUE(out["comparison"].is_null());
  EXPECT_EQ(tool("run " + net_ + " --random 1 --copies auto --compare-device proto:7", &out), 1);
  EXPECT_EQ(out["diagnostics"][0]["code"], "no-such-device");
}

TEST_F(DeviceTool, CopiesAreStrictWarnedOfOrAutomatic) {
  Json out;
  EXPECT_EQ(tool("run " + net_ + " --random 1 --copies strict", &out), 3);
  EXPECT_EQ(out["diagnostics"][0]["code"], "wrong-device");
  EXPECT_EQ(tool("run " + net_ + " --random 1", &out), 0);
  ASSERT_EQ(out["diagnostics"].size(), 2u);
  EXPECT_EQ(out["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(tool("run " + net_ + " --random 1 --werror", &out), 1);
  EXPECT_EQ(tool("run " + net_ + " --random 1 --copies auto --werror", &out), 0);
}

TEST_F(DeviceTool, PlanShowsCopiesStreamsAndArenas) {
  Json out;
  ASSERT_EQ(tool("plan " + net_ + " --copies auto --streams 2", &out), 0) << out.dump(1);
  ASSERT_EQ(out["copies"].size(), 4u);
  EXPECT_EQ(out["copies"][0]["from"], "cpu:0");
  EXPECT_EQ(out["copies"][0]["to"], "proto:0");
  EXPECT_EQ(out["copies"][0]["bytes"], 64);
  EXPECT_GT(out["devices"]["proto:0"]["peak_bytes"], 0);
  EXPECT_EQ(out["devices"]["proto:0"]["peak_bytes"], out["devices"]["proto:0"]["lower_bound_bytes"]);
  bool fenced = false;
  for (const Json& step : out["steps"]) fenced = fenced || step["type"] == "Fence";
  EXPECT_TRUE(fenced);
}

TEST_F(DeviceTool, ListsDevicesAndWhyThereAreNone) {
  Json out;
  ASSERT_EQ(tool("devices", &out), 0);
  ASSERT_EQ(out["devices"].size(), 3u) << out.dump(1);
  EXPECT_EQ(out["devices"][1]["name"], "proto:0");
  EXPECT_EQ(out["devices"][1]["memory_bytes"], 64 << 20);
  EXPECT_TRUE(out["unavailable"].empty());
  const Setting none("HEDDLE_PROTO_DEVICES", "0");
  ASSERT_EQ(tool("devices", &out), 0);
  ASSERT_EQ(out["unavailable"].size(), 1u);
  EXPECT_EQ(out["unavailable"][0]["reason"], "HEDDLE_PROTO_DEVICES is 0");
}

TEST_F(DeviceTool, DumpsWhatLiesOnTheDevice) {
  Json out;
  const std::filesystem::path folder = net_ + ".dump";
  ASSERT_EQ(tool("run " + net_ + " --random 1 --copies auto --check-numerics --dump " + folder.string(), &out), 0) << out.dump(1);
  EXPECT_TRUE(std::filesystem::exists(folder / "a.npy"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace heddle
