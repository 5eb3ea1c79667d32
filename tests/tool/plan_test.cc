// heddle check, plan and plan --buffers.
#include <map>
#include <regex>

#include "base/text/text.h"
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

// x -> Conv -> BatchNormalization -> Relu -> GlobalAveragePool
std::string convolution() {
  const auto constant = [](const std::string& name, const std::string& dims, int count) {
    std::string data = "0.5";
    for (int i = 1; i < count; ++i) data += ", 0.5";
    return R"(, {"name": ")" + name + R"(", "kind": "constant", "dtype": "f32", "dims": [)" + dims + R"(], "data": [)" + data + "]}";
  };
  return net_text("convolution", R"("x")", R"("y")",
                  input("x", "1, 8, 10, 10") + constant("w", "8, 8, 3, 3", 576) + constant("s", "8", 8) + constant("b", "8", 8) +
                      constant("m", "8", 8) + constant("v", "8", 8),
                  node("Conv", R"("x", "w")", "conv") + ", " + node("BatchNormalization", R"("conv", "s", "b", "m", "v")", "bn") + ", " +
                      node("Relu", R"("bn")", "relu") + ", " + node("GlobalAveragePool", R"("relu")", "y"));
}

TEST(ToolCheck, SaysAllErrorsAtOnce) {
  const NetFolder good(two_outputs());
  EXPECT_EQ(heddle_json({"check", good.net()})["operators"], 2);
  const NetFolder unknown(
      net_text("unknown", R"("x")", R"("b")", input("x", "2"), node("Rellu", R"("x")", "a") + ", " + node("NoSuch", R"("a")", "b")));
  const Json object = heddle_json({"check", unknown.net()}, 1);
  EXPECT_EQ(codes(object), (Words{"unknown-operator", "unknown-operator"}));
  EXPECT_EQ(object["diagnostics"][0]["operator"], "a");
  EXPECT_EQ(object["diagnostics"][0]["type"], "Rellu");
  EXPECT_NE(object["diagnostics"][0]["hint"].get<std::string>().find("Relu"), std::string::npos);
  const NetFolder shapes(net_text("shapes", R"("x", "z")", R"("a", "b")", input("x", "2, 3") + ", " + input("z", "4, 5"),
                                  node("MatMul", R"("x", "z")", "a") + ", " + node("Add", R"("x", "z")", "b")));
  EXPECT_EQ(codes(heddle_json({"check", shapes.net()}, 1)), (Words{"shape-mismatch", "shape-mismatch"}));
  // A malformed file is not a finding about the net.
  write_text(good / "text", "no net");
  EXPECT_EQ(heddle({"check", good.file("text")}).status, 3);
  EXPECT_EQ(heddle({"check", good.file("nowhere")}).status, 3);
}

// Exit status 1 is for nets, 3 for files that can't be read, 4 for limits.
TEST(ToolCheck, ExitStatusTellsNetsFromFiles) {
  const NetFolder folder(two_outputs());
  const auto check = [&](const std::string& text) {
    write_text(folder / "net.json", text);
    return heddle_json({"check", folder.net()}, heddle({"check", folder.net()}).status)["exit_code"].get<int>();
  };
  EXPECT_EQ(check(R"({"heddle": 1, "name": "n", "outptus": []})"), 1) << "JSON, but no net";
  EXPECT_EQ(check(net_text("kind", R"("x")", R"("y")", R"({"name": "x", "kind": "imput", "dtype": "f32"})", node("Relu", R"("x")", "y"))),
            1);
  EXPECT_EQ(check(net_text("rank", R"("x")", R"("y")", input("x", "1, 1, 1, 1, 1, 1, 1, 1, 1"), node("Relu", R"("x")", "y"))), 1);
  EXPECT_EQ(check(net_text("none", R"("x")", R"("y")", input("x", "2"), node("Relu", R"("z")", "y"))), 1);
  EXPECT_EQ(check(net_text("twice", R"("x")", R"("x")", input("x", "2") + ", " + input("x", "2"), "")), 1);
  EXPECT_EQ(check(R"({"heddle": 1, "name": "n", )"), 3) << "no JSON";
  EXPECT_EQ(check(""), 3);
  EXPECT_EQ(check("{\"heddle\": 1, \"name\": \"" + std::string(5000, 'n') + "\"}"), 4) << "over a limit";
  // Wrong weights are the net's mistake, absent ones a missing file.
  const std::string weights =
      net_text("weights", R"("x")", R"("y")", input("x", "2") + R"(, {"name": "w", "kind": "constant", "dtype": "f32", "dims": [2],
                                                            "weights": {"file": "w.safetensors", "tensor": "w"}})",
               node("Add", R"("x", "w")", "y"));
  EXPECT_EQ(check(weights), 3);
  const std::string header = R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  std::string file(1, static_cast<char>(header.size()));
  file += std::string(7, '\0') + header + std::string(4, '\0');
  write_text(folder / "w.safetensors", file);
  EXPECT_EQ(check(weights), 1);
}

// Returns a net of x [6] and a shape that is an input.
std::string shaped_by_input() {
  return net_text("shaped", R"("x", "shape")", R"("y")", input("x", "6") + ", " + input("shape", "2", "i64"),
                  node("Reshape", R"("x", "shape")", "y"));
}
std::string shape_file(int64_t rows, int64_t columns) {
  std::string text = npy("2", {});
  text.replace(text.find("<f4"), 3, "<i8");
  for (const int64_t extent : {rows, columns}) text.append(reinterpret_cast<const char*>(&extent), sizeof(extent));
  return text;
}

TEST(ToolPlan, ContentThatDecidesShapesIsNotInvented) {
  const NetFolder folder(shaped_by_input());
  write_text(folder / "shape.npy", shape_file(2, 3));
  const std::string given = "shape=" + folder.file("shape.npy");
  for (const Words& command : {Words{"plan"}, Words{"bench", "--repeat", "1"}}) {
    Words words = command;
    words.insert(words.begin() + 1, folder.net());
    const Json refused = heddle_json(words, 2);
    EXPECT_EQ(codes(refused), Words{"missing-input"}) << refused;
    EXPECT_NE(refused["diagnostics"][0]["message"].get<std::string>().find("input \"shape\""), std::string::npos);
    EXPECT_NE(refused["diagnostics"][0]["hint"].get<std::string>().find("--input shape=FILE"), std::string::npos);
    words.insert(words.end(), {"--input", given});
    heddle_json(words, 0);
  }
  // check finds mistakes that do not depend on the content, and those with this content.
  heddle_json({"check", folder.net()}, 0);
  heddle_json({"check", folder.net(), "--input", given}, 0);
  write_text(folder / "shape.npy", shape_file(4, 3));
  EXPECT_EQ(codes(heddle_json({"check", folder.net(), "--input", given}, 1)), Words{"shape-mismatch"});
}

TEST(ToolCheck, ShapeAndSymbolBind) {
  const NetFolder folder(symbolic());
  EXPECT_EQ(codes(heddle_json({"check", folder.net()}, 2)), Words{"unbound-symbol"});
  heddle_json({"check", folder.net(), "--symbol", "N=2"});
  heddle_json({"check", folder.net(), "--shape", "x=2x3"});
  EXPECT_EQ(codes(heddle_json({"check", folder.net(), "--shape", "x=2x4"}, 1)), Words{"shape-mismatch"});
  EXPECT_EQ(codes(heddle_json({"check", folder.net(), "--shape", "z=2x3"}, 2)), Words{"unknown-name"});
}

TEST(ToolPlan, ShowsStepsAndMemory) {
  const NetFolder folder(convolution());
  const Json plan = heddle_json({"plan", folder.net()});
  ASSERT_FALSE(plan["steps"].empty());
  EXPECT_LT(plan["steps"].size(), 4u) << "batch normalization and Relu are steps of their own";
  bool conv = false;
  for (const Json& step : plan["steps"]) {
    if (step["type"] != "Conv") continue;
    conv = true;
    EXPECT_EQ(step["flops"], 8 * 8 * 8 * (2 * 8 * 3 * 3 + 2)) << "every output: its taps, the bias, Relu";
    EXPECT_EQ(step["bytes"], 4 * (8 * 10 * 10 + 8 * 8 * 3 * 3 + 8 + 8 * 8 * 8));
  }
  EXPECT_TRUE(conv);
  EXPECT_GE(plan["devices"]["cpu"]["peak_bytes"].get<int64_t>(), plan["devices"]["cpu"]["lower_bound_bytes"].get<int64_t>());
  EXPECT_GT(plan["devices"]["cpu"]["peak_bytes"].get<int64_t>(), 0);
  EXPECT_TRUE(plan["dot"].is_null());
  const std::string text = heddle({"plan", folder.net()}).out;
  EXPECT_NE(text.find("\"conv\" Conv kernel"), std::string::npos) << text;
  EXPECT_NE(text.find("cpu: peak " + plan["devices"]["cpu"]["peak_bytes"].dump()), std::string::npos) << text;
}

TEST(ToolPlan, ShapeAndSymbolBind) {
  const NetFolder folder(symbolic());
  const auto shape = [&](const char* option, const char* value) {
    return heddle_json({"plan", folder.net(), option, value})["steps"][0]["inputs"][0]["shape"];
  };
  EXPECT_EQ(shape("--symbol", "N=7"), Json({7, 3}));
  EXPECT_EQ(shape("--shape", "x=9x3"), Json({9, 3}));
  EXPECT_EQ(heddle({"plan", folder.net()}).status, 2);
}

TEST(ToolPlan, DotIsAGraph) {
  const NetFolder folder(two_outputs());
  const std::string text = heddle({"plan", folder.net(), "--dot"}).out;
  EXPECT_EQ(text.rfind("digraph \"two\" {", 0), 0u) << text;
  EXPECT_NE(text.find("s0 -> s1"), std::string::npos) << text;
  EXPECT_EQ(heddle_json({"plan", folder.net(), "--dot"})["dot"].get<std::string>() + "\n", text);
}

// Returns the titles of a picture as (buffer, (bytes, offset)), by the name of the buffer's first value.
std::map<std::string, std::pair<int64_t, int64_t>> drawn_buffers(const std::string& svg) {
  static const std::regex title(
      R"re(<title>(\S+) [a-z0-9]+\[[^\]]*\][^<]*, (\d+) bytes \([^)]*\), at (\d+), steps \d+-\d+, written by )re");
  std::map<std::string, std::pair<int64_t, int64_t>> all;
  for (std::sregex_iterator at(svg.begin(), svg.end(), title), end; at != end; ++at)
    all[(*at)[1]] = {std::stoll((*at)[2]), std::stoll((*at)[3])};
  return all;
}

TEST(ToolPlan, SvgHasTheNumbersOfJson) {
  const NetFolder folder(convolution());
  const Json object = heddle_json({"plan", folder.net(), "--svg", folder.file("p.svg")});
  const std::string svg = read_text(folder / "p.svg");
  EXPECT_EQ(svg.rfind("<svg xmlns=", 0), 0u);
  const auto drawn = drawn_buffers(svg);
  size_t found = 0;
  for (const Json& step : object["steps"])
    for (const Json& value : step["outputs"]) {
      if (value.is_null() || value["placement"] != "arena") continue;
      const auto at = drawn.find(value["name"].get<std::string>());
      if (at == drawn.end()) continue;  // it shares the bytes of another
      ++found;
      EXPECT_EQ(at->second, (std::pair<int64_t, int64_t>(value["size_bytes"], value["offset_bytes"]))) << value;
    }
  EXPECT_EQ(found, drawn.size());
  EXPECT_GT(found, 0u);
  const Json& memory = object["devices"]["cpu"];
  for (const char* const key : {"peak_bytes", "lower_bound_bytes", "sum_bytes", "persistent_bytes"})
    EXPECT_NE(svg.find(" " + human_bytes(memory[key].get<int64_t>())), std::string::npos) << key;
  EXPECT_EQ(codes(heddle_json({"plan", folder.net(), "--svg", "/nowhere/p.svg"}, 3)), Words{"file-unwritable"});
  for (const char* const option : {"--svg", "--svg-net", "--diff"})
    EXPECT_EQ(codes(heddle_json({"plan", folder.net(), option, ""}, 2)), Words{"unknown-option"}) << option;
}

// A net with a Loop of two trips, whose body has an operator of this type.
std::string looping_net(const std::string& type) {
  return std::regex_replace(std::string(R"({"heddle": 1, "name": "looping", "inputs": ["x"], "outputs": ["y"],
    "operator_sets": [{"domain": "", "version": 17}],
    "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": [4]}, {"name": "y"},
      {"name": "trips", "kind": "constant", "dtype": "i64", "dims": [], "data": [2]},
      {"name": "yes", "kind": "constant", "dtype": "bool", "dims": [], "data": [1]}],
    "nodes": [{"type": "Loop", "name": "loop", "inputs": ["trips", "yes", "x"], "outputs": ["y"], "attributes": {"body": {"net":
      {"name": "the_body", "inputs": ["i", "go", "z"], "outputs": ["go_on", "w"],
       "values": [{"name": "i", "kind": "input", "dtype": "i64", "dims": []}, {"name": "go", "kind": "input", "dtype": "bool", "dims": []},
         {"name": "z", "kind": "input", "dtype": "f32", "dims": [4]}, {"name": "go_on"}, {"name": "w"}],
       "nodes": [{"type": "Identity", "name": "go_on", "inputs": ["go"], "outputs": ["go_on"]},
         {"type": "Exp", "name": "inside", "inputs": ["z"], "outputs": ["w"]}]}}}}]})"),
                            std::regex("Exp"), type);
}

TEST(ToolPlan, SvgNetShowsOperatorsCopiesAndSubnets) {
  const NetFolder folder(convolution());
  const std::string file = folder.file("net.svg");
  const Json object = heddle_json({"plan", folder.net(), "--svg-net", file, "--device", "sim:0", "--copies", "auto"});
  const std::string svg = read_text(file);
  size_t copies = 0;
  for (const Json& step : object["steps"]) {
    const std::string title = "<title>step " + step["index"].dump() + ": " + step["name"].get<std::string>() + " (" +
                              step["type"].get<std::string>() + ") by " + step["kernel"].get<std::string>() + " on " +
                              step["device"].get<std::string>();
    EXPECT_EQ(svg.find(title) != std::string::npos, step["type"] != "Fence") << title;
    copies += step["type"] == "Copy" ? 1 : 0;
  }
  EXPECT_GT(copies, 0u);
  EXPECT_NE(svg.find("class=\"copy outlined\""), std::string::npos);
  EXPECT_NE(svg.find("edge red"), std::string::npos);
  EXPECT_NE(svg.find(">f32[1, 8, 1, 1]<"), std::string::npos) << "the shape of an output";
  // A Loop of two trips, whose body is drawn in its box.
  write_text(folder / "loop.json", looping_net("Exp"));
  const Json looping = heddle_json({"plan", folder.file("loop.json"), "--svg-net", file});
  const std::string drawn = read_text(file);
  EXPECT_EQ(looping["steps"][0]["subnets"][0]["net"], "the_body");
  EXPECT_NE(looping["steps"][0]["subnets"][0]["steps"].dump().find("inside"), std::string::npos);
  EXPECT_NE(drawn.find(">the_body<"), std::string::npos);
  EXPECT_NE(drawn.find(">inside<"), std::string::npos);
}

TEST(ToolPlan, DiffNamesWhatIsOther) {
  const NetFolder folder(two_outputs());
  const Json same = heddle_json({"plan", folder.net(), "--diff", folder.net(), "--svg", folder.file("same.svg")})["diff"];
  EXPECT_EQ(read_text(folder / "same.svg").find("class=\"only box\""), std::string::npos);
  EXPECT_NE(read_text(folder / "same.svg").find(">Compared with two of " + folder.net() + ", whose peak of cpu is 1.00 times that above<"),
            std::string::npos);
  EXPECT_EQ(same["steps"], 0);
  EXPECT_TRUE(same["changed"].empty());
  write_text(folder / "one.json", looping_net("Softmax"));
  write_text(folder / "two.json", looping_net("LogSoftmax"));
  const Json inside = heddle_json({"plan", folder.file("one.json"), "--diff", folder.file("two.json")})["diff"]["changed"];
  ASSERT_EQ(inside.size(), 1u) << inside;
  EXPECT_EQ(inside[0]["name"], "loop/the_body/inside");
  write_text(folder / "other.json",
             net_text("other", R"("x")", R"("b", "c")", input("x", "4, 3"),
                      node("Relu", R"("x")", "a") + ", " + node("Exp", R"("a")", "b") + ", " + node("MatMul", R"("a", "t")", "c")));
  EXPECT_EQ(heddle({"plan", folder.net(), "--diff", folder.file("other.json")}).status, 3) << "the other net is wrong";
  write_text(folder / "other.json", net_text("other", R"("x")", R"("a", "c")", input("x", "4, 3"),
                                             node("Relu", R"("x")", "a") + ", " + node("Softmax", R"("a")", "c")));
  const Json diff = heddle_json({"plan", folder.net(), "--diff", folder.file("other.json"), "--svg", folder.file("diff.svg")})["diff"];
  const std::string svg = read_text(folder / "diff.svg");
  for (const char* const marked : {"only", "changed"}) {
    const std::regex strip(std::string("class=\"") + marked + " box\"><title>step ");
    EXPECT_EQ(std::distance(std::sregex_iterator(svg.begin(), svg.end(), strip), {}), 2) << marked << ", one in each plan";
  }
  EXPECT_EQ(diff["steps"], 0);
  EXPECT_EQ(diff["only_in_this"], Json({"b"}));
  EXPECT_EQ(diff["only_in_other"], Json({"c"}));
  ASSERT_EQ(diff["changed"].size(), 1u);
  EXPECT_EQ(diff["changed"][0]["name"], "a");
  // Each net takes the symbols that it has; a symbol that neither has is a mistake.
  const NetFolder open(symbolic());
  EXPECT_EQ(heddle({"plan", open.net(), "--symbol", "N=2", "--diff", folder.net()}).status, 0);
  EXPECT_EQ(heddle({"plan", folder.net(), "--symbol", "N=2", "--diff", open.net()}).status, 0);
  EXPECT_EQ(codes(heddle_json({"plan", open.net(), "--symbol", "N=2", "--symbol", "M=2", "--diff", folder.net()}, 2)),
            Words{"unknown-name"});
  const std::string text = heddle({"plan", folder.net(), "--diff", folder.file("other.json")}).out;
  EXPECT_NE(text.find("- \"b\"\n+ \"c\"\n~ \"a\"\n"), std::string::npos) << text;
}

// ---------------------------------------------------------------- the offset planner alone

struct Table : TemporaryFolder {
  Table() { write_text(*this / "b.csv", "id,lower,upper,size\na,0,2,100\nb,1,3,50\nc,2,4,100\n"); }
  std::string file() const { return (path() / "b.csv").string(); }
  Words arguments(Words more = {}) const {
    Words all = {"plan", "--buffers", file()};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST(ToolPlanBuffers, PacksATable) {
  const Table table;
  const Json object = heddle_json(table.arguments());
  EXPECT_EQ(object["peak_bytes"], 150);
  EXPECT_EQ(object["lower_bound_bytes"], 150);
  EXPECT_EQ(object["optimal"], true);
  EXPECT_EQ(heddle({"plan"}).status, 2);
  write_text(table.path() / "bad.csv", "id,lower,upper,size\na,2,1,100\n");
  EXPECT_EQ(heddle({"plan", "--buffers", (table.path() / "bad.csv").string()}).status, 3);
  for (const char* const option : {"--svg", "--svg-net", "--diff"})  // of a net alone
    EXPECT_EQ(codes(heddle_json(table.arguments({option, (table.path() / "p.svg").string()}), 2)), Words{"unknown-option"}) << option;
  EXPECT_EQ(codes(heddle_json(table.arguments({"--dot"}), 2)), Words{"unknown-option"});
}

TEST(ToolPlanBuffers, OutputHasOffsets) {
  const Table table;
  const std::string to = (table.path() / "o.csv").string();
  ASSERT_EQ(heddle(table.arguments({"-o", to})).status, 0);
  const std::string text = read_text(to);
  EXPECT_EQ(text.rfind("id,lower,upper,size,offset\na,0,2,100,", 0), 0u) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4);
  EXPECT_EQ(heddle({"plan", "-o", to}).status, 2) << "-o belongs to --buffers";
}

TEST(ToolPlanBuffers, CapacityThatDoesNotDoIsALimit) {
  const Table table;
  heddle_json(table.arguments({"--capacity", "150"}));
  const Json object = heddle_json(table.arguments({"--capacity", "149"}), 4);
  EXPECT_EQ(codes(object), Words{"limit-exceeded"});
  EXPECT_NE(object["diagnostics"][0]["message"].get<std::string>().find("150"), std::string::npos) << object["diagnostics"];
}

TEST(ToolPlanBuffers, TimeLimitEndsTheSearch) {
  const TemporaryFolder folder;
  write_text(folder / "b.csv", hard_buffers());
  const Words search = {"plan", "--buffers", (folder / "b.csv").string()};
  const Json quick = heddle_json(search);
  Words longer = search;
  longer.insert(longer.end(), {"--time-limit", "0.5"});
  const Json object = heddle_json(longer);
  EXPECT_FALSE(object["optimal"].get<bool>()) << "solved at once: a harder table is needed";
  EXPECT_LE(object["peak_bytes"].get<int64_t>(), quick["peak_bytes"].get<int64_t>());
  // The search took all of its time, which it does not without the option.
  EXPECT_GE(object["solve_ns"].get<int64_t>(), 400000000);
}

}  // namespace
}  // namespace heddle::tool_tests
