// heddle op: the reference of operators.
#include <algorithm>
#include <set>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolOp, SaysWhatAnOperatorIs) {
  const Json operators = heddle_json({"op", "Gather"})["operators"];
  ASSERT_EQ(operators.size(), 1u);
  const Json& gather = operators[0];
  EXPECT_EQ(gather["attributes"][0]["name"], "axis");
  EXPECT_EQ(gather["attributes"][0]["default"], 0);
  EXPECT_EQ(gather["inputs"][1]["indexes"], "data");
  EXPECT_GE(gather["examples"].size(), 1u);
  EXPECT_EQ(gather["devices"][0], "cpu");
  EXPECT_EQ(gather["plugin"], "cpu");
  const std::string text = heddle({"op", "Gather"}).out;
  for (const char* const part :
       {"  Gather 13  ", "input     data", "attribute axis: int = 0", "example   f32", "devices   cpu", "plugin    cpu"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
  // One that a pointwise expression describes is run by the kernels of Pointwise.
  EXPECT_EQ(heddle_json({"op", "Relu"})["operators"][0]["devices"], heddle_json({"op", "heddle::Pointwise"})["operators"][0]["devices"]);
  EXPECT_EQ(codes(heddle_json({"op", "Gathr"}, 2)), Words{"unknown-name"});
  EXPECT_NE(heddle({"op", "Gathr"}).err.find("did you mean \"Gather\"?"), std::string::npos);
}

TEST(ToolOp, FindsOperatorsByTheirTexts) {
  const auto names = [](const Words& words) {
    std::set<std::string> all;
    const Json object = heddle_json(words);
    for (const Json& one : object["operators"]) all.insert(one["name"].get<std::string>());
    return all;
  };
  const std::set<std::string> every = names({"op"}), gathers = names({"op", "--search", "gATHER"}),
                              axes = names({"op", "--search", "axis"});
  EXPECT_GE(every.size(), 200u);
  for (const char* const name : {"Gather", "GatherElements", "GatherND", "heddle::AllGather"}) EXPECT_EQ(gathers.count(name), 1u) << name;
  EXPECT_LT(gathers.size(), 20u);
  EXPECT_EQ(axes.count("Softmax"), 1u) << "an attribute is called so";
  EXPECT_EQ(axes.count("Relu"), 0u);
  EXPECT_TRUE(names({"op", "--search", "nothing is called like this"}).empty());
  const std::string list = heddle({"op"}).out;
  EXPECT_EQ(static_cast<size_t>(std::count(list.begin(), list.end(), '\n')), heddle_json({"op"})["operators"].size());
}

// Operators of an author's plugin are among them.
TEST(ToolOp, IncludesOperatorsOfOtherPlugins) {
  const Json operators = heddle_json({"op", "example::Scale", "--plugin", example_plugin})["operators"];
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(operators[0]["plugin"], "example");
}

}  // namespace
}  // namespace heddle::tool_tests
