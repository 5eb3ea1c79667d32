// heddle run: one test for each option; each fails if the option is ignored.
#include <limits>

#include "tool/tool_runner.h"

namespace heddle::tool_tests {
namespace {

std::string sha(const Json& object, const std::string& output) {
  return object["outputs"][output]["sha256"].get<std::string>();
}

TEST(ToolRun, InputComesFromAFile) {
  const NetFolder folder(two_outputs());
  const std::vector<float> x = {-1, 2, -3, 4, 0.5f, -0.5f};
  write_text(folder / "x.npy", npy("2, 3,", x));
  ASSERT_EQ(heddle({"run", folder.net(), "--input", "x=" + folder.file("x.npy"), "--output", "a=" + folder.file("a.npy")}).status, 0);
  EXPECT_EQ(npy_values(folder / "a.npy"), (std::vector<float>{0, 2, 0, 4, 0.5f, 0}));
  // A tensor written as .safetensors is read by its name, or without one.
  ASSERT_EQ(heddle({"run", folder.net(), "--input", "x=" + folder.file("x.npy"), "--output", "b=" + folder.file("b.safetensors")}).status,
            0);
  const std::string direct = sha(heddle_json({"run", folder.net(), "--input", "x=" + folder.file("x.npy")}), "b");
  ASSERT_EQ(
      heddle({"run", folder.net(), "--input", "x=" + folder.file("b.safetensors") + ":b", "--output", "a=" + folder.file("c.npy")}).status,
      0);
  ASSERT_EQ(heddle({"run", folder.net(), "--input", "x=" + folder.file("x.npy"), "--output", "b=" + folder.file("b.npy")}).status, 0);
  EXPECT_EQ(npy_values(folder / "c.npy"), npy_values(folder / "b.npy")) << "Relu of exp is exp";
  EXPECT_NE(direct, sha(heddle_json({"run", folder.net(), "--input", "x=" + folder.file("b.npy")}), "b"));
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--input", "z=" + folder.file("x.npy")}, 2)), Words{"unknown-name"});
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--input", "x=" + folder.file("nowhere.npy")}, 3)), Words{"file-not-found"});
  write_text(folder / "cut.npy", read_text(folder / "x.npy").substr(0, 140));
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--input", "x=" + folder.file("cut.npy")}, 3)), Words{"file-truncated"});
}

TEST(ToolRun, InputTakesTensorProtosOfOnnx) {
  const std::filesystem::path data = "/usr/share/libonnx-testdata/data/node/test_relu";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "libonnx-testdata is not installed";
  const NetFolder folder(net_text("relu", R"("x")", R"("y")", input("x", "3, 4, 5"), node("Relu", R"("x")", "y")));
  const Json object = heddle_json(
      {"run", folder.net(), "--input", "x=" + (data / "test_data_set_0/input_0.pb").string(), "--output", "y=" + folder.file("y.npy")});
  EXPECT_EQ(object["outputs"]["y"]["shape"], Json({3, 4, 5}));
  EXPECT_EQ(npy_values(folder / "y.npy").size(), 60u);
}

TEST(ToolRun, RandomContentDependsOnTheSeedAlone) {
  const NetFolder folder(two_outputs());
  const auto of_seed = [&](const char* seed) { return sha(heddle_json({"run", folder.net(), "--random", seed}), "b"); };
  EXPECT_EQ(of_seed("1"), of_seed("1"));
  EXPECT_NE(of_seed("1"), of_seed("2"));
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "3", "--output", "b=" + folder.file("b.npy")}).status, 0);
  for (const float v : npy_values(folder / "b.npy")) EXPECT_TRUE(v >= 1.0f && v < 2.7183f) << v;  // exp of relu of [-1, 1)
  // Indices stay within the bounds of the operator's schema: 3 rows; other integers would go to 100.
  const NetFolder gather(
      net_text("gather", R"("i")", R"("y")",
               input("i", "50", "i64") + R"(, {"name": "w", "kind": "constant", "dtype": "f32", "dims": [3], "data": [1, 2, 3]})",
               node("Gather", R"("w", "i")", "y")));
  ASSERT_EQ(heddle({"run", gather.net(), "--random", "1", "--output", "y=" + gather.file("y.npy")}).status, 0);
  for (const float v : npy_values(gather / "y.npy")) EXPECT_TRUE(v == 1 || v == 2 || v == 3) << v;
}

TEST(ToolRun, OutputDirTakesEveryOutput) {
  const NetFolder folder(two_outputs());
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--output-dir", folder.file("new/all")}).status, 0);
  EXPECT_EQ(npy_values(folder / "new/all/a.npy").size(), 6u);
  EXPECT_EQ(npy_values(folder / "new/all/b.npy").size(), 6u);
  EXPECT_EQ(files_in(folder / "new/all"), 2u);
}

TEST(ToolRun, FetchReportsTheseOutputsAlone) {
  const NetFolder folder(two_outputs());
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1"})["outputs"].size(), 2u);
  const Json object = heddle_json({"run", folder.net(), "--random", "1", "--fetch", "b"});
  EXPECT_EQ(object["outputs"].size(), 1u);
  EXPECT_TRUE(object["outputs"].contains("b"));
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--fetch", "c"}, 2)), Words{"unknown-name"});
}

// --expect compares with the results of another program, within tolerances, and reports where they differ.
TEST(ToolRun, ExpectComparesWithAFile) {
  const NetFolder folder(two_outputs());
  write_text(folder / "x.npy", npy("2, 3,", {-1, 2, -3, 4, 0.5f, -0.5f}));
  write_text(folder / "right.npy", npy("2, 3,", {0, 2.001f, 0, 4, 0.5f, 0}));
  write_text(folder / "wrong.npy", npy("2, 3,", {0, 2.25f, 0, 4, 0, 0}));
  write_text(folder / "b.npy", npy("2, 3,", {1, 7.389056f, 1, 54.59815f, 1.6487212f, 1}));
  const auto run = [&](const Words& more) {
    Words words = {"run", folder.net(), "--input", "x=" + folder.file("x.npy")};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  };
  const std::string right = "a=" + folder.file("right.npy"), wrong = "a=" + folder.file("wrong.npy"), b = "b=" + folder.file("b.npy");
  EXPECT_TRUE(heddle_json(run({}))["expected"].is_null());
  const Json same = heddle_json(run({"--expect", right, "--expect", b}))["expected"];
  EXPECT_EQ(same["a"]["equal"], true) << same;
  EXPECT_EQ(same["b"]["equal"], true) << same;
  EXPECT_EQ(codes(heddle_json(run({"--expect", right, "--rtol", "0", "--atol", "0.0005"}), 1)), Words{"comparison-failed"});

  const Outcome differs = heddle(run({"--expect", wrong}));
  EXPECT_EQ(differs.status, 1);
  EXPECT_EQ(differs.err,
            "error[comparison-failed] \"two\": output \"a\": 2 of 6 elements differ from \"" + folder.file("wrong.npy") +
                "\" by more than 4e-05 + 0.001 times its magnitude, the largest difference at [1, 1], which is 0.5 and not 0, by 0.5; find "
                "the operator with --dump DIR, or give --rtol and --atol that fit\n");
  const Json figures = heddle_json(run({"--expect", wrong}), 1)["expected"]["a"];
  EXPECT_EQ(figures["different"], 2);
  EXPECT_EQ(figures["worst"], (Json{{"index", {1, 1}}, {"actual", 0.5}, {"expected", 0.0}}));
  EXPECT_EQ(heddle(run({"--expect", wrong, "--atol", "0.5"})).status, 0);
  // Each output that differs is reported, and the file whose type differs.
  EXPECT_EQ(codes(heddle_json(run({"--expect", wrong, "--expect", "b=" + folder.file("right.npy")}), 1)),
            (Words{"comparison-failed", "comparison-failed"}));
  const std::vector<double> wide(6);
  write_text(folder / "wide.npy", npy_of("<f8", "2, 3,", wide.data(), 48));
  EXPECT_NE(heddle(run({"--expect", "a=" + folder.file("wide.npy")})).err.find("output \"a\" is f32[2, 3], expected f64[2, 3] as "),
            std::string::npos);

  EXPECT_EQ(codes(heddle_json(run({"--expect", "c=" + folder.file("b.npy")}), 2)), Words{"unknown-name"});
  EXPECT_EQ(codes(heddle_json(run({"--expect", "a=" + folder.file("nowhere.npy")}), 3)), Words{"file-not-found"});
  EXPECT_EQ(codes(heddle_json(run({"--expect", right, "--output", right}), 2)), Words{"invalid-argument"}) << "what is read is not written";
  EXPECT_EQ(heddle(run({"--atol", "1"})).status, 2) << "of nothing";
}

// NaNs, and whole numbers that are equal as doubles.
TEST(ToolRun, ExpectTellsNumbersApart) {
  const NetFolder folder(net_text("two", R"("i", "x")", R"("j", "y")", input("i", "2", "i64") + ", " + input("x", "3"),
                                  node("Identity", R"("i")", "j") + ", " + node("Identity", R"("x")", "y")));
  constexpr int64_t large = int64_t{1} << 53;
  const int64_t i[] = {large, 3}, j[] = {large + 1, 3};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  write_text(folder / "i.npy", npy_of("<i8", "2,", i, 16));
  write_text(folder / "j.npy", npy_of("<i8", "2,", j, 16));
  write_text(folder / "x.npy", npy("3,", {nan, 1, 2}));
  write_text(folder / "y.npy", npy("3,", {nan, nan, 100}));
  const auto expected = [&](const std::string& what, int status) {
    return heddle_json({"run", folder.net(), "--input", "i=" + folder.file("i.npy"), "--input", "x=" + folder.file("x.npy"), "--expect",
                        what.substr(0, 2) + folder.file(what.substr(2))},
                       status)["expected"][what.substr(0, 1)];
  };
  EXPECT_EQ(expected("j=i.npy", 0)["equal"], true);
  const Json off_by_one = expected("j=j.npy", 1);
  EXPECT_EQ(off_by_one["worst"], (Json{{"index", {0}}, {"actual", large}, {"expected", large + 1}}));
  EXPECT_EQ(off_by_one["max_abs_error"], 1.0);
  EXPECT_EQ(expected("y=x.npy", 0)["equal"], true) << "nan is nan";
  const Json worst = expected("y=y.npy", 1);
  EXPECT_EQ(worst["different"], 2);
  EXPECT_EQ(worst["worst"]["expected"], "nan") << worst;
  // Only infinity itself is near infinity.
  const float infinity = std::numeric_limits<float>::infinity();
  write_text(folder / "z.npy", npy("3,", {nan, infinity, -infinity}));
  EXPECT_EQ(expected("y=z.npy", 1)["different"], 2);
  write_text(folder / "x.npy", npy("3,", {nan, infinity, infinity}));
  EXPECT_EQ(expected("y=z.npy", 1)["different"], 1);
}

TEST(ToolRun, PrintShowsTheElements) {
  const NetFolder folder(two_outputs());
  write_text(folder / "x.npy", npy("2, 3,", {1, 2, 3, 4, 5, 6}));
  const std::string x = "x=" + folder.file("x.npy"), text = "f32[2, 3] =\n  1 2 3\n  4 5 6";
  EXPECT_NE(heddle({"run", folder.net(), "--input", x, "--print", "a"}).out.find("\"a\" " + text), std::string::npos);
  EXPECT_EQ(heddle_json({"run", folder.net(), "--input", x, "--print", "a"})["printed"], Json({{"a", text}}));
}

TEST(ToolRun, ParamReplacesAVariable) {
  const NetFolder folder(
      net_text("scaled", R"("x")", R"("y")", input("x", "2") + R"(, {"name": "w", "kind": "variable", "variable": "w", "version": 0})",
               node("Mul", R"("x", "w")", "y"), R"(, "variables": [{"name": "w", "dtype": "f32", "dims": [2], "data": [10, 100]}])"));
  write_text(folder / "x.npy", npy("2,", {1, 2}));
  write_text(folder / "w.npy", npy("2,", {-1, 3}));
  const Words run = {"run", folder.net(), "--input", "x=" + folder.file("x.npy"), "--output", "y=" + folder.file("y.npy")};
  Json object = heddle_json(run);
  EXPECT_EQ(npy_values(folder / "y.npy"), (std::vector<float>{10, 200}));
  EXPECT_EQ(object["variable_bytes"], 8);
  Words with = run;
  with.insert(with.end(), {"--param", "w=" + folder.file("w.npy")});
  heddle_json(with);
  EXPECT_EQ(npy_values(folder / "y.npy"), (std::vector<float>{-1, 6}));
  with.back() = "v=" + folder.file("w.npy");
  EXPECT_EQ(codes(heddle_json(with, 2)), Words{"unknown-name"});
}

TEST(ToolRun, ShapeAndSymbolBindWhatTheNetLeavesOpen) {
  const NetFolder folder(symbolic());
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1"}, 2)), Words{"unbound-symbol"});
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--symbol", "N=8"})["outputs"]["y"]["shape"], Json({8, 3}));
  const Json misspelt = heddle_json({"run", folder.net(), "--random", "1", "--symbol", "N=8", "--symbol", "M=8"}, 2);
  EXPECT_EQ(codes(misspelt), Words{"unknown-name"}) << misspelt;
  EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--shape", "x=5x3"})["outputs"]["y"]["shape"], Json({5, 3}));
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--shape", "x=5x4"}, 3)), Words{"shape-mismatch"});
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--shape", "x=-1x3"}, 2)), Words{"invalid-argument"});
}

TEST(ToolRun, DeviceMustBeThere) {
  const NetFolder folder(two_outputs());
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--device", "cpu"}).status, 0);
  for (const char* option : {"--device", "--compare-device"})
    EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", option, "nonesuch:1"}, 1)), Words{"no-such-device"}) << option;
}

TEST(ToolRun, CopiesStreamsAndGraphTakeTheirWordsAlone) {
  const NetFolder folder(two_outputs());
  for (const char* mode : {"strict", "warn", "auto"})
    EXPECT_EQ(heddle_json({"run", folder.net(), "--random", "1", "--copies", mode})["copies"]["count"], 0) << mode;
  for (const char* mode : {"off", "auto"})
    EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--graph", mode}, 2)), Words{"not-implemented"}) << mode;
  for (const Words& wrong : {Words{"--copies", "maybe"}, Words{"--graph", "maybe"}, Words{"--streams", "0"}})
    EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", wrong[0], wrong[1]}, 2)), Words{"unknown-option"}) << wrong[0];
}

TEST(ToolRun, RepeatAndWarmupCountRuns) {
  const NetFolder folder(two_outputs());
  const Json once = heddle_json({"run", folder.net(), "--random", "1"});
  EXPECT_EQ(once["latency_ns"]["runs"], 1);
  EXPECT_TRUE(once["steady_state_allocations"]["heap"].is_null());
  const Json few = heddle_json({"run", folder.net(), "--random", "1", "--repeat", "99"});
  EXPECT_EQ(few["latency_ns"]["runs"], 99);
  EXPECT_TRUE(few["latency_ns"]["p99"].is_null());
  const Json many = heddle_json({"run", folder.net(), "--random", "1", "--repeat", "100"});
  EXPECT_GE(many["latency_ns"]["p99"].get<int64_t>(), many["latency_ns"]["min"].get<int64_t>());
  // A variable that counts shows how many runs there were in all.
  const NetFolder counting(net_text("counting", "", R"("s")", R"({"name": "s@0", "kind": "variable", "variable": "s", "version": 0},
      {"name": "one", "kind": "constant", "dtype": "f32", "dims": [1], "data": [1]}, {"name": "s", "kind": "variable", "variable": "s", "version": 1})",
                                    node("AccumulateAdd", R"("s@0", "one")", "s", R"(, "domain": "heddle")"),
                                    R"(, "variables": [{"name": "s", "dtype": "f32", "dims": [1], "data": [0]}])"));
  ASSERT_EQ(heddle_json(
                {"run", counting.net(), "--repeat", "3", "--warmup", "4", "--output", "s=" + counting.file("s.npy")})["latency_ns"]["runs"],
            3);
  EXPECT_EQ(npy_values(counting / "s.npy"), std::vector<float>{7});
}

TEST(ToolRun, SeedIsOfTheNetsRandomOperators) {
  const NetFolder folder(
      net_text("random", "", R"("y")", "", node("RandomNormal", "", "y", R"(, "attributes": {"shape": {"ints": [8]}})")));
  const auto of_seed = [&](const char* seed) { return sha(heddle_json({"run", folder.net(), "--seed", seed}), "y"); };
  EXPECT_EQ(of_seed("1"), of_seed("1"));
  EXPECT_NE(of_seed("1"), of_seed("2"));
  EXPECT_NE(of_seed("0"), of_seed("1"));
  EXPECT_EQ(of_seed("0"), sha(heddle_json({"run", folder.net()}), "y")) << "0 is a seed, and the one that is taken when none is given";
}

TEST(ToolRun, NumbersThatAreNoneAreRefused) {
  const NetFolder folder(two_outputs());
  for (const char* seed : {"-1", "+1", "1.5", "0x10", "18446744073709551616", "", "one"})
    for (const char* option : {"--random", "--seed"})
      EXPECT_EQ(heddle_json({"run", folder.net(), "--random=1", std::string(option) + "=" + seed}, 2)["outputs"], Json()) << option << seed;
  for (const char* seed : {"-1", "18446744073709551616"}) {
    EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", seed}, 2)), Words{"unknown-option"});
    EXPECT_EQ(codes(heddle_json({"model", "lenet", "-o", folder.file("l.heddle"), "--seed", seed}, 2)), Words{"unknown-option"});
    EXPECT_EQ(codes(heddle_json({"plugin", "run", "Relu", "--shape", "2", "--seed", seed}, 2)), Words{"unknown-option"});
  }
  heddle_json({"run", folder.net(), "--random", "18446744073709551615"}, 0);
  EXPECT_NE(sha(heddle_json({"run", folder.net(), "--random", "0"}), "a"), sha(heddle_json({"run", folder.net(), "--random", "1"}), "a"));
  for (const char* seconds : {"nan", "inf", "-1", "0", "1s"}) heddle_json({"run", folder.net(), "--random", "1", "--deadline", seconds}, 2);
}

TEST(ToolRun, ANameIsGivenOnce) {
  const NetFolder folder(symbolic());
  write_text(folder / "x.npy", npy("2, 3", {1, 2, 3, 4, 5, 6}));
  const std::string x = "x=" + folder.file("x.npy");
  const Words repeated[] = {{"--symbol", "N=2", "--symbol", "N=3"},
                            {"--symbol", "N=2", "--symbol", "N=2"},
                            {"--shape", "x=2x3", "--shape", "x=4x3"},
                            {"--input", x, "--input", x},
                            {"--param", x, "--param", x}};
  for (const Words& options : repeated) {
    Words words = {"run", folder.net(), "--random", "1"};
    words.insert(words.end(), options.begin(), options.end());
    const Json refused = heddle_json(words, 2);
    EXPECT_EQ(codes(refused), Words{"invalid-argument"}) << options[0];
    const std::string message = refused["diagnostics"][0]["message"];
    EXPECT_NE(message.find(options[0] + " gives "), std::string::npos) << message;
    EXPECT_NE(message.find(" twice"), std::string::npos) << message;
  }
  for (const char* command : {"check", "plan", "bench"}) {
    heddle_json({command, folder.net(), "--symbol", "N=2", "--symbol", "N=2"}, 2);
    heddle_json({command, folder.net(), "--shape", "x=2x3", "--shape", "x=2x3"}, 2);
  }
}

TEST(ToolRun, DeadlineEndsARun) {
  const NetFolder folder(slow_net(400));
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--deadline", "0.001"}, 1)), Words{"deadline-exceeded"});
  const NetFolder quick(two_outputs());
  EXPECT_EQ(heddle({"run", quick.net(), "--random", "1", "--deadline", "100"}).status, 0);
}

TEST(ToolRun, MemoryLimitIsOfThePlannedPeak) {
  const NetFolder folder(two_outputs());
  const Json free = heddle_json({"run", folder.net(), "--random", "1"});
  const int64_t peak = free["devices"]["cpu"]["planned_peak_bytes"].get<int64_t>();
  EXPECT_EQ(free["devices"]["cpu"]["measured_peak_bytes"], peak);
  ASSERT_GT(peak, 0);
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--memory-limit", std::to_string(peak)}).status, 0);
  EXPECT_EQ(codes(heddle_json({"run", folder.net(), "--random", "1", "--memory-limit", std::to_string(peak - 1)}, 4)),
            Words{"limit-exceeded"});
}

TEST(ToolRun, CheckNumericsNamesTheFirstOperator) {
  const NetFolder folder(
      net_text("bad", R"("x")", R"("y")", input("x", "2"), node("Log", R"("x")", "l") + ", " + node("ReduceSum", R"("l")", "y")));
  write_text(folder / "x.npy", npy("2,", {1, -1}));
  const Words run = {"run", folder.net(), "--input", "x=" + folder.file("x.npy")};
  heddle_json(run);
  Words checked = run;
  checked.push_back("--check-numerics");
  const Json object = heddle_json(checked, 1);
  EXPECT_EQ(codes(object), Words{"numerics"});
  EXPECT_EQ(object["diagnostics"][0]["operator"], "l");
  write_text(folder / "x.npy", npy("2,", {1, 2}));
  EXPECT_EQ(heddle(checked).status, 0);
  // Values that are fed are no operator's fault, and bytes past an extent are no elements.
  write_text(folder / "x.npy", npy("2,", {1, std::numeric_limits<float>::infinity()}));
  EXPECT_EQ(heddle(checked).status, 0);
  const NetFolder bounded(
      net_text("bounded", R"("x")", R"("y")", input("x", "4"),
               node("Unique", R"("x")", "u") + ", " + node("Log", R"("u")", "l") + ", " + node("ReduceSum", R"("l")", "y")));
  write_text(bounded / "x.npy", npy("4,", {2, 2, 2, 2}));
  EXPECT_EQ(heddle({"run", bounded.net(), "--input", "x=" + bounded.file("x.npy"), "--check-numerics"}).status, 0);
}

TEST(ToolRun, DumpsAndOutputsHaveAFileEach) {
  // The two names give the same file name.
  const NetFolder folder(
      net_text("names", R"("x")", R"("a/b", "a_b")", input("x", "2"), node("Relu", R"("x")", "a/b") + ", " + node("Neg", R"("x")", "a_b")));
  write_text(folder / "x.npy", npy("2,", {-1, 6}));
  ASSERT_EQ(heddle({"run", folder.net(), "--input", "x=" + folder.file("x.npy"), "--dump", folder.file("dump"), "--output-dir",
                    folder.file("out")})
                .status,
            0);
  for (const char* where : {"dump", "out"}) {
    EXPECT_EQ(files_in(folder / where), 2u) << where;
    EXPECT_EQ(npy_values(folder / where / "a_b.npy"), (std::vector<float>{0, 6})) << where;
    EXPECT_EQ(npy_values(folder / where / "a_b_2.npy"), (std::vector<float>{1, -6})) << where;
  }
  // pool2 is channels-last, its reorder row-major: both files have the same numbers in the same order.
  ASSERT_EQ(heddle({"model", "lenet", "-o", folder.file("lenet.heddle")}).status, 0);
  ASSERT_EQ(heddle({"run", folder.file("lenet.heddle"), "--random", "1", "--dump", folder.file("lenet")}).status, 0);
  EXPECT_EQ(npy_values(folder / "lenet/pool2.npy"), npy_values(folder / "lenet/pool2_reorder.npy"));
}

TEST(ToolRun, IsaIsWhatTheKernelsWereChosenFor) {
  const NetFolder folder(two_outputs());
  const auto isa = [&](const std::string& most) {
    const Outcome outcome = Tool({"run", folder.net(), "--random", "1", "--json"}).set("HEDDLE_CPU_ISA", most).run();
    return checked_object(outcome, "run.json")["isa"].get<std::string>();
  };
  EXPECT_EQ(isa("v2"), "sse");
  EXPECT_NE(isa("v3"), "avx512");
}

TEST(ToolRun, DeadlinesHoldForRunsThatAreLookedAt) {
  const NetFolder folder(slow_net(3));
  for (const Words& looks : {Words{}, Words{"--check-numerics"}, Words{"--dump", folder.file("dump")}}) {
    Words arguments = {"run", folder.net(), "--random", "1", "--deadline", "1e-9"};
    arguments.insert(arguments.end(), looks.begin(), looks.end());
    EXPECT_EQ(codes(heddle_json(arguments, 1)), Words{"deadline-exceeded"});
  }
}

TEST(ToolRun, DumpWritesOperatorsAndOnlyChoosesThem) {
  const NetFolder folder(slow_net(3));
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--dump", folder.file("dump")}).status, 0);
  EXPECT_EQ(files_in(folder / "dump"), 3u);
  EXPECT_EQ(npy_values(folder / "dump/p1.npy").size(), 512u * 512u);
  ASSERT_EQ(heddle({"run", folder.net(), "--random", "1", "--dump", folder.file("one"), "--only", "p1"}).status, 0);
  EXPECT_EQ(files_in(folder / "one"), 1u);
  EXPECT_EQ(read_text(folder / "one/p1.npy"), read_text(folder / "dump/p1.npy"));
  const Outcome none = heddle({"run", folder.net(), "--random", "1", "--dump", folder.file("none"), "--only", "p11"});
  EXPECT_EQ(none.status, 2) << none.err;
  EXPECT_NE(none.err.find("--only \"p11\": no operator of the plan has this name or type"), std::string::npos) << none.err;
  EXPECT_EQ(heddle({"run", folder.net(), "--random", "1", "--only", "p1"}).status, 2);
}

TEST(ToolRun, AllocationsAreCounted) {
  const NetFolder folder(two_outputs());
  const Json none = heddle_json({"run", folder.net(), "--random", "1", "--repeat", "50", "--threads", "1"});
  const NetFolder allocating(
      net_text("allocating", R"("x")", R"("y")", input("x", "2"), node("Allocates", R"("x")", "y", R"(, "domain": "allocates")")));
  const Json some =
      heddle_json({"run", allocating.net(), "--plugin", test_plugin("allocates"), "--random", "1", "--repeat", "11", "--threads", "1"});
  if (some["steady_state_allocations"]["heap"].is_null()) GTEST_SKIP() << "sanitizers keep their own operator new";
  EXPECT_EQ(none["steady_state_allocations"]["heap"], 0);
  // There are three in each run but the first.
  EXPECT_EQ(some["steady_state_allocations"]["heap"], 30);
}

TEST(ToolRun, MeasuredPeakHasWhatNoPlanCouldHold) {
  // NonZero's extent is known only afterwards; the output of its consumer is dynamic.
  const NetFolder folder(
      net_text("late", R"("x")", R"("y")", input("x", "2, 3"), node("Relu", R"("x")", "a") + ", " + node("NonZero", R"("a")", "y")));
  write_text(folder / "x.npy", npy("2, 3,", {0, 1, 0, 2, 0, 3}));
  const Json object = heddle_json({"run", folder.net(), "--input", "x=" + folder.file("x.npy")});
  EXPECT_EQ(object["outputs"]["y"]["shape"], Json({2, 3}));
  EXPECT_GE(object["devices"]["cpu"]["measured_peak_bytes"].get<int64_t>(), object["devices"]["cpu"]["planned_peak_bytes"].get<int64_t>());
  EXPECT_GT(object["resident_peak_bytes"].get<int64_t>(), 1000000);
}

}  // namespace
}  // namespace heddle::tool_tests
