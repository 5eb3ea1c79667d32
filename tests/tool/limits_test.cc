// --limit NAME=VALUE.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// x -> Loop of one trip around a net like this one, `depth` times; innermost Neg.
std::string nested(int depth) {
  const std::string x = input("x", "2"), port = R"({"name": "turn", "kind": "input", "dtype": "i64", "dims": []}, )"
                                                R"({"name": "go", "kind": "input", "dtype": "bool", "dims": []}, )";
  std::string body = net_text("level0", R"("turn", "go", "x")", R"("go", "y")", port + x, node("Neg", R"("x")", "y"));
  const std::string constants = R"({"name": "once", "kind": "constant", "dtype": "i64", "dims": [], "data": [1]}, )"
                                R"({"name": "yes", "kind": "constant", "dtype": "bool", "dims": [], "data": [1]}, )";
  for (int level = 1; level <= depth; ++level) {
    const std::string loop = node("Loop", R"("once", "yes", "x")", "y", R"(, "attributes": {"body": {"net": )" + body + "}}");
    body = level == depth ? net_text("nested", R"("x")", R"("y")", constants + x, loop)
                          : net_text("level" + std::to_string(level), R"("turn", "go", "x")", R"("go", "y")", port + constants + x, loop);
  }
  return body;
}

TEST(ToolLimit, RaisesAndLowersForEveryCommandThatReadsNets) {
  const NetFolder deep(nested(18));
  const Words commands[] = {
      {"run", deep.net(), "--random", "1"},   {"check", deep.net()},   {"plan", deep.net()},
      {"bench", deep.net(), "--repeat", "1"}, {"inspect", deep.net()}, {"convert", deep.net(), deep.file("b.heddle")}};
  for (Words words : commands) {
    const Json refused = heddle_json(words, 4);
    EXPECT_EQ(codes(refused), Words{"limit-exceeded"}) << words[0];
    const std::string text = refused["diagnostics"][0].dump();
    EXPECT_NE(text.find("the limit subnet_depth is 16"), std::string::npos) << text;
    EXPECT_NE(text.find("raise the limit with --limit subnet_depth=VALUE\""), std::string::npos) << text;
    words.insert(words.end(), {"--limit", "subnet_depth=18"});
    heddle_json(words, 0);
  }
  const NetFolder two(two_outputs());
  heddle_json({"check", two.net(), "--limit", "nodes=1"}, 4);
  heddle_json({"check", two.net(), "--limit", "nodes=2", "--limit", "file_bytes=1MiB"}, 0);
  heddle_json({"check", two.net(), "--limit", "file_bytes=10B"}, 4);
  heddle_json({"run", two.net(), "--random", "1", "--limit", "plan_bytes=1"}, 4);
}

// Operations of a run, and the printed values of all limits. An Einsum of f16 that sums each operand alone stays a loop over all products.
TEST(ToolLimit, CountsOperationsAndPrintsWhatHolds) {
  const NetFolder products(net_text("products", R"("x", "y")", R"("z")",
                                    input("x", "3000, 3000", "f16") + ", " + input("y", "3000, 3000", "f16"),
                                    node("Einsum", R"("x", "y")", "z", R"(, "attributes": {"equation": {"string": "ij,kl->"}})")));
  const Json refused = heddle_json({"check", products.net(), "--limit", "operations=1000000"}, 4);
  EXPECT_NE(refused["diagnostics"][0].dump().find("a run takes 1.62e+14 operations"), std::string::npos) << refused;
  EXPECT_EQ(refused["limits"]["operations"], 1000000);
  const Json checked = heddle_json({"check", products.net()}, 0);
  EXPECT_EQ(checked["limits"]["operations"], 10'000'000'000'000'000);
  EXPECT_EQ(checked["limits"]["subnet_depth"], 16);
  EXPECT_GT(checked["limits"]["plan_bytes"], 0);
  // The run ends at its deadline, in the middle of its one operator.
  const Json late = heddle_json({"run", products.net(), "--random", "1", "--deadline", "0.2"}, 1);
  EXPECT_EQ(codes(late), Words{"deadline-exceeded"}) << late;
}

// A library would prepare for such extents for ever.
TEST(ToolLimit, AbsurdPaddingIsCheckedInAMoment) {
  const NetFolder padded(net_text("padded", R"("x", "w")", R"("y")", input("x", "1, 3, 5, 5") + ", " + input("w", "8, 3, 3, 3"),
                                  node("Conv", R"("x", "w")", "y", R"(, "attributes": {"pads": {"ints": [0, 1000000, 0, 1000000]}})")));
  heddle_json({"check", padded.net()}, 0);
}

TEST(ToolLimit, HoldsForWeightsInputsAndTables) {
  const NetFolder two(two_outputs());
  write_text(two / "x.npy", npy("2, 3", {1, 2, 3, 4, 5, 6}));
  const Json refused = heddle_json({"run", two.net(), "--input", "x=" + two.file("x.npy"), "--limit", "weight_file_bytes=100"}, 4);
  EXPECT_NE(refused["diagnostics"][0].dump().find("the limit weight_file_bytes is 100 B"), std::string::npos) << refused;
  heddle_json({"run", two.net(), "--input", "x=" + two.file("x.npy"), "--limit", "weight_file_bytes=1KiB"}, 0);
  heddle_json({"run", two.net(), "--input", "x=" + two.file("x.npy"), "--output", "a=" + two.file("a.safetensors")}, 0);
  heddle_json({"inspect", two.file("a.safetensors")}, 0);
  heddle_json({"inspect", two.file("a.safetensors"), "--limit", "weight_file_bytes=10"}, 4);
  write_text(two / "b.csv", "id,lower,upper,size\na,0,2,100\nb,1,3,50\n");
  heddle_json({"plan", "--buffers", two.file("b.csv"), "--limit", "nodes=1"}, 4);
  heddle_json({"plan", "--buffers", two.file("b.csv"), "--limit", "nodes=2"}, 0);
}

TEST(ToolLimit, WrongOnesAreNamed) {
  const NetFolder two(two_outputs());
  const auto refused = [&](const Words& limits, const char* words) {
    Words arguments = {"check", two.net()};
    for (const std::string& limit : limits) arguments.insert(arguments.end(), {"--limit", limit});
    const std::string text = heddle_json(arguments, 2)["diagnostics"].dump();
    EXPECT_NE(text.find(words), std::string::npos) << text;
  };
  refused({"node=5"}, R"(did you mean \"nodes\"? the limits are file_bytes, weight_file_bytes, nodes)");
  refused({"nodes=many"}, "is no whole number");
  refused({"nodes=1.5"}, "is no whole number");
  refused({"file_bytes=large"}, "is no size");
  refused({"nodes=-1"}, "can't be -1");
  refused({"subnet_depth=100000"}, "can't be 100000");
  refused({"nodes"}, "is not NAME=VALUE");
  refused({"nodes=5", "nodes=6"}, R"(gives \"nodes\" twice)");
}

}  // namespace
}  // namespace heddle::tool_tests
