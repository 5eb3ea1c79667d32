// heddle op: the reference of operators.
#include <algorithm>
#include <cctype>
#include <filesystem>
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

// A reference says what each does, in sentences, how dims follow, and where it is declared, and gives an example.
TEST(ToolOp, KnowsEveryOperatorOfOurPlugins) {
  const Json object = heddle_json({"op"});
  for (const Json& one : object["operators"]) {
    const std::string name = one["name"], doc = one["doc"];
    EXPECT_TRUE(doc.size() > 15 && std::isupper(static_cast<unsigned char>(doc[0])) && doc.back() == '.') << name << ": " << doc;
    EXPECT_TRUE(one["shapes"].is_string()) << name;
    EXPECT_FALSE(one["examples"].empty()) << name;
    ASSERT_TRUE(one["file"].is_string()) << name;
    EXPECT_TRUE(std::filesystem::exists(std::filesystem::path(HEDDLE_SOURCE_DIR) / one["file"].get<std::string>())) << name;
    EXPECT_FALSE(one["devices"].empty()) << name;
  }
}

// docs/operators is what the tool makes of the plugins that every build has.
TEST(ToolOp, WritesThePagesOfTheDocumentation) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path made = folder / "pages", documented = HEDDLE_SOURCE_DIR "/docs/operators";
  ASSERT_EQ(heddle({"op", "--of", "cpu", "--of", "image", "--pages", made.string()}).status, 0);
  std::set<std::string> names, expected;
  for (const auto& entry : std::filesystem::directory_iterator(made)) names.insert(entry.path().filename().string());
  for (const auto& entry : std::filesystem::directory_iterator(documented)) expected.insert(entry.path().filename().string());
  EXPECT_EQ(names, expected);
  for (const std::string& name : names)
    EXPECT_TRUE(read_text(made / name) == read_text(documented / name))
        << "docs/operators/" << name << " is another: run heddle op --of cpu --of image --pages docs/operators";
}

TEST(ToolOp, WritesPagesOfAnAuthorsPlugin) {
  const testing::TemporaryFolder folder;
  ASSERT_EQ(heddle({"op", "--of", "example", "--pages", folder.path().string(), "--plugin", example_plugin}).status, 0);
  const std::string index = read_text(folder / "README.md"), page = read_text(folder / "example.md");
  EXPECT_NE(index.find("| [example::Scale](example.md#examplescale) |"), std::string::npos) << index;
  for (const char* const part :
       {"## example::Scale", "| input | `", "| shapes | ", "| devices |  | cpu (kernels of the plugin example) |", "```text"})
    EXPECT_NE(page.find(part), std::string::npos) << part << "\n" << page;
  EXPECT_EQ(codes(heddle_json({"op", "--of", "nothing", "--pages", folder.path().string()}, 2)), Words{"unknown-name"});
  EXPECT_EQ(codes(heddle_json({"op", "--pages", example_plugin}, 3)), Words{"file-unwritable"});
}

// Operators of an author's plugin are among them.
TEST(ToolOp, IncludesOperatorsOfOtherPlugins) {
  const Json operators = heddle_json({"op", "example::Scale", "--plugin", example_plugin})["operators"];
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(operators[0]["plugin"], "example");
}

}  // namespace
}  // namespace heddle::tool_tests
