// heddle op: the reference of operators.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

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

// A sentence about shapes names ports and what they have: "Y has the dims of X".
void expect_ports_in(const std::string& shapes, const Json& described) {
  std::set<std::string> ports = {"input", "inputs", "output", "outputs", "each", "they", "it", "those", "values", "states"};
  for (const char* const kind : {"inputs", "outputs"})
    for (const Json& port : described[kind]) ports.insert(port["name"].get<std::string>());
  static const std::regex names("(\\w+) (?:has|have) the (?:dims|extent)|the (?:dims|extent) of (\\w+)");
  for (std::sregex_iterator at(shapes.begin(), shapes.end(), names), end; at != end; ++at)
    for (const size_t group : {1, 2}) {
      const std::string name = (*at)[group];
      EXPECT_TRUE(name.empty() || ports.contains(name)) << described["name"] << ": " << shapes;
    }
}

// docs/gradients.md tells whether there is a gradient; what `heddle op` says of it agrees.
TEST(ToolOp, SaysOfGradientsWhatTheirPageSays) {
  const std::string page = read_text(std::filesystem::path(HEDDLE_SOURCE_DIR) / "docs/gradients.md"),
                    text = heddle({"inspect", HEDDLE_BINARY_DIR "/lib/cpu.so"}).out;
  static const std::regex row("\\| (\\S+) \\| (expression|callback|runtime|nodes)");
  std::map<std::string, std::string> forms;
  std::istringstream lines(text);
  const std::string mark = "    gradient  ";
  for (std::string line, name; std::getline(lines, line);)
    if (line.rfind(mark, 0) == 0)
      forms[name] = line.substr(mark.size());
    else if (line.rfind("    ", 0) != 0)
      name = line.substr(std::min<size_t>(2, line.size()), line.find(' ', 2) - 2);
  const std::map<std::string, std::string> words = {{"expression", "the derivative of the expression"},
                                                    {"callback", "made by a function, from attributes and types"},
                                                    {"runtime", "the runtime differentiates the subnets"}};
  size_t found = 0;
  for (std::sregex_iterator at(page.begin(), page.end(), row), end; at != end; ++at) {
    const std::string name = (*at)[1], form = (*at)[2];
    ASSERT_TRUE(forms.contains(name)) << name;
    if (words.contains(form))
      EXPECT_EQ(forms[name], words.at(form)) << name;
    else
      EXPECT_NE(forms[name].find(" = "), std::string::npos) << name << ": " << forms[name];
    ++found;
  }
  EXPECT_GE(found, 100u);
}

// A reference says what each does, in sentences, how dims follow, and where it is declared, and gives an example.
TEST(ToolOp, KnowsEveryOperatorOfOurPlugins) {
  const Json object = heddle_json({"op"});
  ASSERT_GE(object["operators"].size(), 200u);
  for (const Json& one : object["operators"]) {
    const std::string name = one["name"], doc = one["doc"];
    EXPECT_TRUE(doc.size() > 15 && std::isupper(static_cast<unsigned char>(doc[0])) && doc.back() == '.') << name << ": " << doc;
    ASSERT_TRUE(one["shapes"].is_string()) << name;
    expect_ports_in(one["shapes"], one);
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

TEST(ToolOp, SaysAllOfEach) {
  const std::string all = heddle({"op", "--all"}).out, one = heddle({"op", "heddle::AdamUpdate"}).out;
  EXPECT_NE(all.find(one), std::string::npos) << one;
  const Json object = heddle_json({"op", "--all"});
  for (const Json& described : object["operators"])
    EXPECT_NE(all.find("  " + described["name"].get<std::string>() + " " + described["version"].dump() + "  "), std::string::npos)
        << described["name"];
}

// Pages stay in their folder, links lead to sections, and no text becomes markup or reaches a terminal as a control.
TEST(ToolOp, WritesPagesOfHostileTexts) {
  const testing::TemporaryFolder folder;
  const std::filesystem::path pages = folder / "pages";
  const Words words = {"op", "--of", "../outside", "--pages", pages.string(), "--plugin", test_plugin("hostile_texts")};
  ASSERT_EQ(heddle(words).status, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) EXPECT_EQ(entry.path(), pages);
  std::map<std::string, std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(pages)) texts[entry.path().filename().string()] = read_text(entry.path());
  const std::string index = texts["README.md"];
  static const std::regex link(R"(\| \[([^\]]*)\]\(([^)#]+)#([^)]+)\) \|)");
  std::set<std::pair<std::string, std::string>> places;
  for (std::sregex_iterator at(index.begin(), index.end(), link), end; at != end; ++at) {
    EXPECT_TRUE(texts.contains((*at)[2])) << at->str();
    EXPECT_NE(texts[(*at)[2]].find("\n## " + (*at)[1].str() + "\n"), std::string::npos) << at->str();
    EXPECT_TRUE(places.emplace((*at)[2], (*at)[3]).second) << at->str() << " is the place of another";
  }
  EXPECT_EQ(places.size(), 5u) << index;
  for (const auto& [name, text] : texts) {
    EXPECT_EQ(text.find('\x1b'), std::string::npos) << name;
    EXPECT_EQ(text.find("\n# headings"), std::string::npos) << name;
    EXPECT_EQ(text.find("<script>"), text.find("\\<script>") + (text.find("<script>") == std::string::npos ? 0 : 1)) << name;
    EXPECT_EQ(name.find_first_of("/| )`\x1b"), std::string::npos) << name;
  }
  EXPECT_EQ(heddle(words).status, 0) << "its own pages are made anew";
  write_text(pages / "README.md", "# A readme of mine\n");
  EXPECT_EQ(codes(heddle_json(words, 3)), Words{"file-unwritable"});
  EXPECT_EQ(read_text(pages / "README.md"), "# A readme of mine\n");
}

// Operators of an author's plugin are among them.
TEST(ToolOp, IncludesOperatorsOfOtherPlugins) {
  const Json operators = heddle_json({"op", "example::Scale", "--plugin", example_plugin})["operators"];
  ASSERT_EQ(operators.size(), 1u);
  EXPECT_EQ(operators[0]["plugin"], "example");
}

}  // namespace
}  // namespace heddle::tool_tests
