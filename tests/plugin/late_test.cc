// Steps whose extents are known only during the run: the resources that their kernels may request, their subnets, and kernels that read
// true extents themselves and so need not be late.
#include <gtest/gtest.h>

#include "plugins.h"
#include "session_plan.h"

namespace heddle {
namespace {

class Late : public ::testing::Test {
 protected:
  Session open(const std::string& json, const SessionOptions& session_options = {}) {
    RuntimeOptions options;
    options.default_plugins = false;
    options.threads = 2;
    options.plugins = {HEDDLE_BINARY_DIR "/lib/cpu.so", test_plugin("extents"), test_plugin("awkward_provider")};
    auto runtime = Runtime::create(options);
    EXPECT_TRUE(runtime.ok()) << runtime.status().text();
    auto session = runtime->open_bytes(json.data(), json.size(), "", session_options);
    EXPECT_TRUE(session.ok()) << session.status().text();
    return *session;
  }
  static std::vector<float> floats_of(const Tensor& tensor) {
    const auto* data = static_cast<const float*>(tensor.data());
    return {data, data + tensor.shape().element_count()};
  }
};

// x [6] through operators of `types`; the first output of each is the input of the next.
std::string chain(const std::vector<std::string>& types, const std::string& outputs) {
  std::string nodes, from = "x";
  for (const std::string& type : types) {
    nodes += std::string(nodes.empty() ? "" : ", ") + R"({"name": ")" + type + R"(", "domain": "extents", "type": ")" + type +
             R"(", "inputs": [")" + from + R"("], "outputs": [")" + type + "\"" + (type.rfind("Sum", 0) == 0 ? R"(, "prepared")" : "") +
             "]}";
    from = type;
  }
  return R"({"heddle": 1, "name": "chain", "inputs": ["x"], "outputs": [)" + outputs +
         R"(], "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [6]}], "nodes": [)" + nodes + "]}";
}

TEST_F(Late, KernelsGetResources) {
  Session session = open(chain({"Compact", "Ticketed"}, R"("Ticketed")"));
  std::vector<float> x = {1, -1, 2, 3, -1, -1};
  for (const float number : {1.0f, 2.0f}) {
    const auto outputs = session.run({TensorView{DType::f32, {6}, x.data()}});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    EXPECT_EQ(floats_of(outputs.value()[0]), (std::vector<float>{1 + number, 2 + number, 3 + number}));
  }
  EXPECT_TRUE(last_plan(session)->steps[1].late);
}

TEST_F(Late, KernelsThatReadExtentsArePreparedOnce) {
  for (const std::string kind : {"SumReads", "Sum"}) {
    const bool reads = kind == "SumReads";
    Session session = open(chain({"Compact", "TwiceReads", kind}, "\"" + kind + R"(", "prepared", "TwiceReads")"));
    std::vector<float> x = {1, -1, 2, 3, -1, 7};
    int64_t prepared = 0;
    for (int positives = 4; positives >= 0; --positives) {
      float sum = 0;
      std::vector<float> twice;
      for (const float v : x)
        if (v > 0) sum += 2 * v, twice.push_back(2 * v);
      const auto outputs = session.run({TensorView{DType::f32, {6}, x.data()}});
      ASSERT_TRUE(outputs.ok()) << outputs.status().text();
      EXPECT_EQ(floats_of(outputs.value()[0])[0], sum);
      EXPECT_EQ(floats_of(outputs.value()[2]), twice);
      prepared = *static_cast<const int64_t*>(outputs.value()[1].data());
      if (const auto it = std::find_if(x.begin(), x.end(), [](float v) { return v > 0; }); it != x.end()) *it = -1;
    }
    EXPECT_EQ(prepared, reads ? 1 : 5) << kind;
    EXPECT_FALSE(last_plan(session)->steps[1].late);
    EXPECT_EQ(last_plan(session)->steps[2].late, !reads);
  }
}

// The error is that of the kernel which wrote the extent, and the step that reads it is not run.
TEST_F(Late, NobodyReadsBeyondABound) {
  Session session = open(chain({"CompactLies", "SumReads"}, R"("SumReads")"));
  std::vector<float> x = {1, 2, 3, 4, 5, 6};
  const Status status = session.run({TensorView{DType::f32, {6}, x.data()}}).status();
  EXPECT_EQ(status.code(), Code::kernel_failed) << status.text();
  EXPECT_EQ(status.diagnostic().node, "CompactLies") << status.text();
  EXPECT_NE(status.text().find("wrote extent 106, the bound is 6"), std::string::npos) << status.text();
}

// Positions of x's elements that are not 0, as floats, through an If whose branches are `then` and `other` (type and inputs of one node).
std::string if_net(const std::string& then, const std::string& other) {
  const auto branch = [](const std::string& name, const std::string& node) {
    return R"({"net": {"name": ")" + name +
           R"(", "inputs": ["v"], "outputs": ["r"], "values": [{"name": "v", "kind": "input", "dtype": "f32"}],
   "nodes": [{"name": "r", "outputs": ["r"], )" +
           node + "}]}}";
  };
  return R"({"heddle": 1, "name": "late", "operator_sets": [{"domain": "", "version": 17}], "inputs": ["condition", "x"], "outputs": ["y", "z"],
 "values": [{"name": "condition", "kind": "input", "dtype": "bool", "dims": []}, {"name": "x", "kind": "input", "dtype": "f32", "dims": [6]}],
 "nodes": [{"name": "p", "type": "NonZero", "inputs": ["x"], "outputs": ["p"]},
  {"name": "v", "type": "Cast", "inputs": ["p"], "outputs": ["v"], "attributes": {"to": {"int": 1}}},
  {"name": "y", "type": "If", "inputs": ["condition", "v"], "outputs": ["y"], "attributes": {"then_branch": )" +
         branch("then", then) + R"(, "else_branch": )" + branch("else", other) + R"(}},
  {"name": "z", "type": "Neg", "inputs": ["y"], "outputs": ["z"]}]})";
}

TEST_F(Late, IfRunsItsBranchesOnTrueExtents) {
  const std::string doubled = R"("type": "Add", "inputs": ["v", "v"])", relu = R"("type": "Relu", "inputs": ["v"])",
                    longer = R"("type": "Concat", "inputs": ["v", "v"], "attributes": {"axis": {"int": 1}})";
  for (const bool same_shape : {true, false}) {
    Session session = open(if_net(doubled, same_shape ? relu : longer));
    std::vector<float> x = {1, 0, 3, 0, 5, 6};
    for (const size_t remaining : {4u, 4u, 2u, 0u})
      for (bool condition : {true, false, true}) {
        if (remaining == 2) x = {0, 9, 0, 0, 0, 9};
        if (remaining == 0) x.assign(6, 0);
        std::vector<float> expected;
        for (size_t i = 0; i < 6; ++i)
          if (x[i] != 0) expected.push_back(static_cast<float>(i) * (condition ? 2.0f : 1.0f));
        ASSERT_EQ(expected.size(), remaining);
        if (!condition && !same_shape) expected.insert(expected.end(), expected.begin(), expected.begin() + static_cast<long>(remaining));
        const auto outputs = session.run({TensorView{DType::boolean, {}, &condition}, TensorView{DType::f32, {6}, x.data()}});
        ASSERT_TRUE(outputs.ok()) << outputs.status().text();
        EXPECT_EQ(outputs.value()[0].shape(), (Shape{1, static_cast<int64_t>(expected.size())}));
        EXPECT_EQ(floats_of(outputs.value()[0]), expected);
        for (float& v : expected) v = -v;
        EXPECT_EQ(floats_of(outputs.value()[1]), expected);
      }
  }
}

TEST_F(Late, AFailingBranchIsNamed) {
  Session session = open(if_net(R"("domain": "extents", "type": "CompactLies", "inputs": ["v"])", R"("type": "Relu", "inputs": ["v"])"));
  std::vector<float> x(6, 1);
  bool condition = true;
  const Status status = session.run({TensorView{DType::boolean, {}, &condition}, TensorView{DType::f32, {6}, x.data()}}).status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.text().find("\"y/r\" (extents::CompactLies): wrote extent"), std::string::npos) << status.text();
}

// x [2], joined with itself in each of `trips` trips.
std::string growing_loop(const std::string& trips) {
  return R"({"heddle": 1, "name": "growth", "operator_sets": [{"domain": "", "version": 17}], "inputs": ["x"], "outputs": ["y"],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [2]}, {"name": "M", "kind": "constant", "dtype": "i64", "dims": [], "data": [)" +
         trips + R"(]},
  {"name": "go", "kind": "constant", "dtype": "bool", "dims": [], "data": [1]}],
 "nodes": [{"name": "y", "type": "Loop", "inputs": ["M", "go", "x"], "outputs": ["y"], "attributes": {"body": {"net": {"name": "body",
   "inputs": ["i", "c", "v"], "outputs": ["d", "w"],
   "values": [{"name": "i", "kind": "input", "dtype": "i64"}, {"name": "c", "kind": "input", "dtype": "bool"}, {"name": "v", "kind": "input", "dtype": "f32"}],
   "nodes": [{"name": "d", "type": "Identity", "inputs": ["c"], "outputs": ["d"]},
    {"name": "w", "type": "Concat", "inputs": ["v", "v"], "outputs": ["w"], "attributes": {"axis": {"int": 0}}}]}}}}]})";
}

TEST_F(Late, LoopsMayGrow) {
  Session session = open(growing_loop("3"));
  std::vector<float> x = {1, 2};
  for (int again = 0; again < 2; ++again) {
    const auto outputs = session.run({TensorView{DType::f32, {2}, x.data()}});
    ASSERT_TRUE(outputs.ok()) << outputs.status().text();
    const std::vector<float> y = floats_of(outputs.value()[0]);
    ASSERT_EQ(y.size(), 16u);
    for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], x[i % 2]);
  }
}

TEST_F(Late, LoopsThatGrowForEverMeetALimit) {
  SessionOptions options;
  options.memory_limit = 1 << 20;
  Session session = open(growing_loop("1000000"), options);
  std::vector<float> x = {1, 2};
  const Status status = session.run({TensorView{DType::f32, {2}, x.data()}}).status();
  EXPECT_EQ(status.code(), Code::limit_exceeded) << status.text();
  EXPECT_NE(status.text().find("\"y\" (Loop)"), std::string::npos) << status.text();
  EXPECT_EQ(status.diagnostic().option, "SessionOptions::memory_limit");
}

}  // namespace
}  // namespace heddle
