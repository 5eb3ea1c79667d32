// The hostile operators in a session: preparing or running fails with the error of the lone operator, naming net and node, and both the
// session and the runtime stay usable.
#include <gtest/gtest.h>

#include "heddle/session.h"
#include "hostile_operators.h"
#include "plugins.h"

namespace heddle {
namespace {

std::string net_of(const std::string& type) {
  return R"({"heddle": 1, "name": "net", "inputs": ["x"], "outputs": ["z"],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4]}],
 "nodes": [{"name": "before", "domain": "hostile", "type": "Slow", "inputs": ["x"], "outputs": ["y"]},
  {"name": "culprit", "domain": "hostile", "type": ")" +
         type + R"(", "inputs": ["y"], "outputs": ["z"]}]})";
}

class HostileSession : public ::testing::TestWithParam<Failure> {
 protected:
  // Opens, prepares and runs a net with the operator; returns the status of the first of these that fails.
  static Status run(Runtime& runtime, const std::string& type) {
    const std::string json = net_of(type);
    auto session = runtime.open_bytes(json.data(), json.size(), "");
    if (!session.ok()) return session.status();
    float x[4] = {1, 2, 3, 4};
    Status status;
    for (int again = 0; again < 2; ++again) {
      status = session->run({TensorView{DType::f32, {4}, x}}).status();
      if (status.ok()) break;
    }
    return status;
  }
};

TEST_P(HostileSession, FailsAndGoesOn) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = 2;
  options.plugins = {test_plugin("hostile_kernels")};
  auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  const Status status = run(*runtime, GetParam().type);
  EXPECT_EQ(status.code(), GetParam().code) << status.text();
  EXPECT_NE(status.text().find("\"culprit\""), std::string::npos) << status.text();
  if (GetParam().code != Code::limit_exceeded) {
    EXPECT_NE(status.text().find(GetParam().text), std::string::npos) << status.text();
  }
  for (const char c : status.text()) ASSERT_TRUE(c >= ' ' && c != 0x7f) << "control character in: " << status.text();
  const Status after = run(*runtime, "Slow");
  EXPECT_TRUE(after.ok()) << after.text();
}

// The operator inside a branch gives the same code, and its path in the error leads to it.
TEST_P(HostileSession, InASubnetItSaysTheSame) {
  RuntimeOptions options;
  options.default_plugins = false;
  options.threads = 2;
  options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", test_plugin("hostile_kernels")};
  auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime.ok()) << runtime.status().text();
  const std::string branch = net_of(GetParam().type);
  const std::string json = R"({"heddle": 1, "name": "outer", "inputs": ["c", "x"], "outputs": ["z"],
 "values": [{"name": "c", "kind": "input", "dtype": "bool", "dims": []}, {"name": "x", "kind": "input", "dtype": "f32", "dims": [4]}],
 "nodes": [{"name": "if", "type": "If", "inputs": ["c", "x"], "outputs": ["z"],
            "attributes": {"then_branch": {"net": )" +
                           branch + R"(}, "else_branch": {"net": )" + branch + "}}}]}";
  auto session = runtime->open_bytes(json.data(), json.size(), "");
  ASSERT_TRUE(session.ok()) << session.status().text();
  float x[4] = {1, 2, 3, 4};
  uint8_t yes = 1;
  const Status status = session->run({TensorView{DType::boolean, {}, &yes}, TensorView{DType::f32, {4}, x}}).status();
  ASSERT_FALSE(status.ok());
  if (std::string(GetParam().type) == "BadExtent") return;  // values without extents are refused in subnets
  EXPECT_EQ(status.code(), GetParam().code) << status.text();
  EXPECT_EQ(status.diagnostic().node, "if/culprit") << status.text();
  EXPECT_EQ(status.diagnostic().net, "outer");
  EXPECT_EQ(status.diagnostic().type, std::string("hostile::") + GetParam().type);
  if (GetParam().code != Code::limit_exceeded) {
    EXPECT_NE(status.text().find(GetParam().text), std::string::npos) << status.text();
  }
  for (const char c : status.text()) ASSERT_TRUE(c >= ' ' && c != 0x7f) << "control character in: " << status.text();
}

INSTANTIATE_TEST_SUITE_P(Operators, HostileSession, ::testing::ValuesIn(hostile_operators),
                         [](const auto& instance) { return std::string(instance.param.type); });

}  // namespace
}  // namespace heddle
