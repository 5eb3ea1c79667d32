// The kernel with an epilogue that the author's guide shows (tests/authors/guide/epilogue.cc), in a net.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// y = relu(x w + b + r) * s. If not `whole`, all values in between are outputs too, and nothing can be fused.
std::string linear_net(bool whole) {
  const std::string linear = node("Linear", R"("x", "w", "b")", "product", R"(, "domain": "guide")");
  return net_text(
      "linear", R"("x", "w", "b", "r", "s")", whole ? R"("y")" : R"("y", "product", "sum", "rectified")",
      input("x", "7, 30") + ", " + input("w", "30, 300") + ", " + input("b", "300") + ", " + input("r", "7, 300") + ", " + input("s", "1"),
      linear + ", " + node("Add", R"("r", "product")", "sum") + ", " + node("Relu", R"("sum")", "rectified") + ", " +
          node("Mul", R"("rectified", "s")", "y"));
}

Words fused_in(const Json& plan) {
  Words fused;
  for (const Json& step : plan["steps"])
    for (const Json& name : step["fused"]) fused.push_back(name);
  return fused;
}

TEST(ToolEpilogue, IsFusedAndGivesTheSameBits) {
  const std::string plugin = test_plugin("guide_epilogue");
  const NetFolder fused(linear_net(true)), apart(linear_net(false));
  const Json plan = heddle_json({"plan", fused.net(), "--plugin", plugin});
  EXPECT_EQ(plan["steps"].size(), 1u) << plan["steps"];
  EXPECT_EQ(fused_in(plan), (Words{"sum", "rectified", "y"}));
  EXPECT_EQ(fused_in(heddle_json({"plan", apart.net(), "--plugin", plugin})), Words{});
  const auto run = [&](const NetFolder& folder) {
    const std::string file = folder.file("y.npy");
    EXPECT_EQ(heddle({"run", folder.net(), "--plugin", plugin, "--random", "3", "--threads", "2", "--output", "y=" + file}).status, 0);
    return npy_values(file);
  };
  const std::vector<float> together = run(fused);
  EXPECT_EQ(together.size(), 2100u);
  EXPECT_EQ(together, run(apart));
}

}  // namespace
}  // namespace heddle::tool_tests
