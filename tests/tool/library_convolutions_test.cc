// Convolutions with one group of the recipes are computed by oneDNN, with one of its fast implementations, in every batch: what oneDNN says
// that it has made is compared with the steps of the plan.
#include <fmt/format.h>

#include <regex>

#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// The lines "onednn_verbose,create:cache_miss,cpu,convolution,brgconv:avx512_core,...,mb1_ic3oc64_ih224oh112kh7sh2dh0ph3_iw224...,0.8".
Words made_by_onednn(const std::string& net) {
  const Outcome outcome = Tool({"plan", net}).set("DNNL_VERBOSE", "2").run();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  Words lines;
  std::istringstream text(outcome.out);
  for (std::string line; std::getline(text, line);)
    if (line.starts_with("onednn_verbose,create")) lines.push_back(line);
  return lines;
}

// Tiles have all input channels and some of the output channels, of the rows and of the columns.
bool is_made(const Words& lines, int64_t input_channels, int64_t kernel_rows) {
  const std::regex problem(fmt::format(R"(,cpu,convolution,(?!ref|gemm).*_ic{}oc\d+_.*kh{}s)", input_channels, kernel_rows));
  return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) { return std::regex_search(line, problem); });
}

class LibraryConvolutions : public ::testing::TestWithParam<const char*> {};

TEST_P(LibraryConvolutions, ComputeRecipesInEveryBatch) {
  const NetFolder folder("");
  int convolutions = 0;
  for (const char* batch : {"1", "3", "8", "64"}) {
    ASSERT_EQ(heddle({"model", GetParam(), "--batch", batch, "-o", folder.file("net.heddle")}).status, 0);
    const Words lines = made_by_onednn(folder.file("net.heddle"));
    if (lines.empty()) GTEST_SKIP() << "this oneDNN was built without its verbose mode";
    for (const std::string& line : lines) EXPECT_EQ(line.find(",ref"), std::string::npos) << line;
    const Json plan = heddle_json({"plan", folder.file("net.heddle")});
    for (const Json& step : plan["steps"]) {
      if (step["type"] != "Conv") continue;
      const Json &x = step["inputs"][0]["shape"], &w = step["inputs"][1]["shape"];
      if (x[1] != w[1]) continue;  // groups: depthwise ones have loops of their own
      ++convolutions;
      EXPECT_TRUE(is_made(lines, x[1].get<int64_t>(), w[2].get<int64_t>())) << "batch " << batch << ": " << step["name"];
    }
  }
  EXPECT_GE(convolutions, 8);
}
INSTANTIATE_TEST_SUITE_P(Recipes, LibraryConvolutions,
                         ::testing::Values("densenet121", "digits", "inception_v3", "lenet", "mobilenet_v2", "photos", "resnet18",
                                           "resnet50", "unet"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace heddle::tool_tests
