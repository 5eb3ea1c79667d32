// The awkward operators that need a session: an updated variable, a subnet that is run, another plugin's resource.
#include <gtest/gtest.h>

#include "heddle/session.h"
#include "plugins.h"

namespace heddle {
namespace {

class AwkwardSession : public ::testing::Test {
 protected:
  Session open(const std::string& json, const std::vector<std::string>& plugins = {"awkward", "awkward_provider"}) {
    RuntimeOptions options;
    options.default_plugins = false;
    options.threads = 2;
    for (const std::string& plugin : plugins) options.plugins.push_back(test_plugin(plugin));
    auto runtime = Runtime::create(options);
    EXPECT_TRUE(runtime.ok()) << runtime.status().text();
    auto session = runtime->open_bytes(json.data(), json.size(), "");
    EXPECT_TRUE(session.ok()) << session.status().text();
    return *session;  // the session keeps what it needs of the runtime
  }
  static TensorView view(std::vector<float>& values, const Shape& shape) { return {DType::f32, shape, values.data()}; }
};

const char* const sgd_net = R"({"heddle": 1, "name": "sgd", "inputs": ["dw"], "outputs": ["w@1"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [2], "trainable": true, "data": [1, 2]}],
 "values": [{"name": "dw", "kind": "input", "dtype": "f32", "dims": [2]}, {"name": "w", "kind": "variable", "variable": "w", "version": 0},
  {"name": "rate", "kind": "constant", "dtype": "f32", "dims": [], "data": [0.5]},
  {"name": "w@1", "kind": "variable", "variable": "w", "version": 1}],
 "nodes": [{"name": "update", "domain": "awkward", "type": "SgdUpdate", "inputs": ["w", "dw", "rate"], "outputs": ["w@1"]}]})";

TEST_F(AwkwardSession, SgdUpdateLeavesTheNextVersion) {
  Session session = open(sgd_net);
  std::vector<float> gradient = {2, -4};
  for (int step = 1; step <= 3; ++step) {
    const auto outputs = session.run({view(gradient, {2})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    const auto w = session.read_variable("w");
    ASSERT_TRUE(w.ok()) << w.status().text();
    const auto* values = static_cast<const float*>(w->data());
    EXPECT_EQ(values[0], 1.0f - static_cast<float>(step));
    EXPECT_EQ(values[1], 2.0f + 2 * static_cast<float>(step));
  }
}

const char* const choice_net = R"({"heddle": 1, "name": "choice", "inputs": ["condition", "x"], "outputs": ["y"],
 "values": [{"name": "condition", "kind": "input", "dtype": "bool", "dims": []}, {"name": "x", "kind": "input", "dtype": "f32", "dims": [3]}],
 "nodes": [{"name": "y", "domain": "awkward", "type": "If", "inputs": ["condition", "x"], "outputs": ["y"], "attributes": {
  "then_branch": {"net": {"name": "then", "inputs": ["x"], "outputs": ["t"], "values": [{"name": "x", "kind": "input", "dtype": "f32"}],
   "nodes": [{"name": "t", "domain": "awkward", "type": "Sum", "inputs": ["x", "x"], "outputs": ["t"]}]}},
  "else_branch": {"net": {"name": "else", "inputs": ["x"], "outputs": ["e"], "values": [{"name": "x", "kind": "input", "dtype": "f32"}],
   "nodes": [{"name": "e", "domain": "awkward", "type": "Relu", "inputs": ["x"], "outputs": ["e"]}]}}}}]})";

TEST_F(AwkwardSession, IfRunsTheBranchOfItsCondition) {
  Session session = open(choice_net);
  std::vector<float> x = {-1, 0, 2};
  for (const bool taken : {true, false, true}) {
    bool condition = taken;
    const auto outputs = session.run({TensorView{DType::boolean, {}, &condition}, view(x, {3})});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    const auto* y = static_cast<const float*>(outputs.value()[0].data());
    EXPECT_EQ(std::vector<float>(y, y + 3), taken ? (std::vector<float>{-2, 0, 4}) : (std::vector<float>{0, 0, 2}));
  }
}

const char* const ticket_net = R"({"heddle": 1, "name": "tickets", "inputs": [], "outputs": ["number"],
 "nodes": [{"name": "number", "domain": "awkward", "type": "Ticket", "inputs": [], "outputs": ["number"]}]})";

TEST_F(AwkwardSession, TicketsComeFromAnotherPluginsResource) {
  Session session = open(ticket_net);
  auto first = session.prepare(), second = session.prepare();
  ASSERT_TRUE(first.ok()) << first.status().text();
  ASSERT_TRUE(second.ok()) << second.status().text();
  for (int64_t expected = 1; expected < 5; ++expected) {  // the counter lives as long as the session, contexts share it
    Context& context = expected % 2 ? *first : *second;
    const Status status = context.run();
    ASSERT_TRUE(status.ok()) << status.text();
    EXPECT_EQ(*static_cast<const int64_t*>(context.output(0).data), expected);
  }
}

TEST_F(AwkwardSession, AMissingResourceNamesItself) {
  Session session = open(ticket_net, {"awkward"});
  const auto context = session.prepare();
  EXPECT_EQ(context.status().code(), Code::missing_resource);
  EXPECT_NE(context.status().text().find("awkward_provider.counter"), std::string::npos) << context.status().text();
  EXPECT_NE(context.status().text().find("number"), std::string::npos) << context.status().text();
}

TEST_F(AwkwardSession, PluginsLeaveWithTheLastSession) {
  {
    const Session session = open(ticket_net);
    EXPECT_TRUE(is_mapped("awkward"));
    EXPECT_TRUE(is_mapped("awkward_provider"));
  }
  EXPECT_FALSE(is_mapped("awkward"));
  EXPECT_FALSE(is_mapped("awkward_provider"));
}

}  // namespace
}  // namespace heddle
