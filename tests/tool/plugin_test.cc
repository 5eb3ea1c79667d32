// heddle plugin list, check, new and run; the operator in the README. plugin new -> build -> check -> run by a net is package.new_plugin.
#include "tool_runner.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolPlugin, ListTellsWhatCameFromWhere) {
  const Json plugins = heddle_json({"plugin", "list", "--plugin", example_plugin})["plugins"];
  std::string names;
  for (const Json& plugin : plugins) names += plugin["name"].get<std::string>() + " ";
  ASSERT_EQ(names, "example " + bundled_plugins);
  EXPECT_EQ(plugins[0]["path"], std::filesystem::canonical(example_plugin).string());
  EXPECT_EQ(plugins[0]["operators"], Json::array({{{"name", "example::Scale"}, {"version", 1}}}));
  ASSERT_EQ(plugins[0]["kernels"].size(), 1u);
  EXPECT_EQ(plugins[0]["kernels"][0]["device"], "cpu");
  EXPECT_EQ(plugins[0]["kernels"][0]["types"], Json({{"f32"}}));
}

TEST(ToolPlugin, CheckPassesTheExample) {
  const Json object = heddle_json({"plugin", "check", example_plugin});
  EXPECT_EQ(object["operators"], Json::array({{{"operator", "example::Scale"},
                                               {"status", "pass"},
                                               {"mistake", nullptr},
                                               {"reason", nullptr},
                                               {"never_with", Json::array()},
                                               {"kernels_not_run", Json::array()},
                                               {"notes", Json::array()}}}));
}

// Without examples, shapes follow from the declared dims of the ports.
TEST(ToolPlugin, CheckTakesShapesFromDeclaredDims) {
  const Json operators = heddle_json({"plugin", "check", test_plugin("dims"), "--strict"})["operators"];
  EXPECT_FALSE(operators.empty());
  for (const Json& one : operators) EXPECT_EQ(one["status"], "pass") << one;
}

TEST(ToolPlugin, CheckPassesOneWithoutExceptions) {
  const Json operators = heddle_json({"plugin", "check", test_plugin("no_exceptions"), "--strict"})["operators"];
  ASSERT_EQ(operators.size(), 2u);
  for (const Json& one : operators) EXPECT_EQ(one["status"], "pass") << one;
}

// The dtypes that the kernel's code reads and that its ports allow differ: this is reported, not memory past the end of an input, and not a
// general failure.
TEST(ToolPlugin, CheckNamesElementsThatAreTakenForOthers) {
  for (const char* name : {"misreads", "misreads_no_exceptions"}) {
    const Json object = heddle_json({"plugin", "check", test_plugin(name), "--operator", "ReadsFloats"}, 1);
    EXPECT_EQ(object["operators"][0]["mistake"], "dtype") << object;
    EXPECT_NE(object["operators"][0]["reason"].dump().find("the kernel reads input 0 as f32: say which dtypes it takes"),
              std::string::npos);
  }
}

TEST(ToolPlugin, CheckRunsOnADeviceToo) {
  const Words words = {"plugin", "check", example_plugin, "--device", "sim:0"};
  EXPECT_EQ(heddle_json(words)["operators"][0]["status"], "pass");
  Words json = words;
  json.push_back("--json");
  const Outcome wrong = Tool(json).set("HEDDLE_SIM_WRONG", "Scale").run();
  EXPECT_EQ(wrong.status, 1);
  const Json verdict = Json::parse(wrong.out)["operators"][0];
  EXPECT_EQ(verdict["status"], "fail");
  EXPECT_NE(verdict["reason"].get<std::string>().find("on sim:0 output 0 has other bits"), std::string::npos) << verdict;
  EXPECT_EQ(heddle({"plugin", "check", example_plugin, "--device", "sim", "--strict"}).status, 0) << "the index may be left out";
}

// A device that was requested by name does not exist: nothing was compared on it, and that is no success.
TEST(ToolPlugin, CheckOnADeviceThatIsNotThereFails) {
  for (const auto& [device, says] : {std::pair("sim:9", "there are 2 of kind \"sim\""),
                                     std::pair("none:0", "no loaded plugin brings devices"), std::pair("cpu:1", "there is one cpu")}) {
    const Json nowhere = heddle_json({"plugin", "check", example_plugin, "--device", device}, 1);
    EXPECT_EQ(codes(nowhere), Words{"no-such-device"}) << device;
    EXPECT_NE((nowhere["diagnostics"][0]["message"].get<std::string>() + nowhere["diagnostics"][0]["hint"].dump()).find(says),
              std::string::npos)
        << nowhere;
    EXPECT_TRUE(nowhere["operators"].is_null()) << nowhere;
  }
}

// The simulated device runs the kernel for the host: the one for another kind of device was not run, and the suite reports that.
TEST(ToolPlugin, CheckNamesTheKernelsThatDidNotRun) {
  for (const Words& more : {Words{}, Words{"--device", "sim:0"}}) {
    Words words = {"plugin", "check", test_plugin("two_kinds")};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = heddle(words);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(outcome.out.starts_with("ok   two_kinds::Twice\n     kernel for cuda not run\n1 of 1 operators passed, 1 in part\n"))
        << outcome.out;
    const Json object = heddle_json(words);
    EXPECT_EQ(object["operators"][0]["kernels_not_run"], Json::array({"cuda"}));
    words.emplace_back("--strict");
    EXPECT_EQ(heddle(words).status, 1);
  }
}

// Kernels that wait for files or networks use libraries that allocate and have threads: that is noted, and no mistake. Without abort such a
// kernel keeps a context beyond a deadline: that is noted as well. The same in a kernel that computes fails.
TEST(ToolPlugin, CheckNotesWhatAsynchronousKernelsDo) {
  std::map<std::string, Words> noted;
  if (!Json::parse(heddle({"plugin", "check", test_plugin("waits"), "--json"}).out)["not_examined"].empty())
    GTEST_SKIP() << "a build with sanitizers does not look for what allocates or starts threads";
  const Json object = heddle_json({"plugin", "check", test_plugin("waits"), "--strict"}, 1);
  std::map<std::string, std::string> mistakes;
  for (const Json& one : object["operators"]) {
    const std::string name = one["operator"];
    mistakes[name] = one["mistake"].is_null() ? "" : one["mistake"].get<std::string>();
    for (const Json& note : one["notes"]) noted[name].push_back(note["name"]);
  }
  EXPECT_EQ(mistakes,
            (std::map<std::string, std::string>{{"waits::Reads", ""}, {"waits::ReadsForEver", ""}, {"waits::Computes", "starts-threads"}}));
  EXPECT_EQ(noted, (std::map<std::string, Words>{{"waits::Reads", {"allocates", "starts-threads"}},
                                                 {"waits::ReadsForEver", {"allocates", "starts-threads", "no-abort"}}}));
  const Outcome outcome = heddle({"plugin", "check", test_plugin("waits"), "--operator", "ReadsForEver"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("     note starts-threads: starts threads when it runs (1 in one run)\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("     note no-abort: its asynchronous kernel has no abort()"), std::string::npos) << outcome.out;
}

// Runs every operator of the plugin with its examples and with inputs that the suite makes up, in every dtype, with every optional port and
// attribute.
TEST(ToolPlugin, CheckPassesTheCpuPlugin) {
  // The timeout is long because sanitizers are slow.
  const Json operators = heddle_json({"plugin", "check", cpu_plugin, "--strict", "--device", "sim:0", "--timeout", "300"})["operators"];
  EXPECT_GT(operators.size(), 160u);
  for (const Json& one : operators) {
    EXPECT_EQ(one["status"], "pass") << one;
    EXPECT_TRUE(one["never_with"].empty()) << one;
  }
}

TEST(ToolPlugin, CheckPassesTheImagePlugin) {
  const Json operators = heddle_json({"plugin", "check", image_plugin, "--strict"})["operators"];
  EXPECT_EQ(operators.size(), 6u);
  for (const Json& one : operators) EXPECT_EQ(one["status"], "pass") << one;
}

// The loop's condition is a number of the input: with the random numbers of these seeds it would never end.
TEST(ToolPlugin, CheckBoundsLoopsOnRandomInputs) {
  for (const char* seed : {"2", "7"})
    EXPECT_EQ(heddle({"plugin", "check", cpu_plugin, "--operator", "Loop", "--seed", seed, "--timeout", "100"}).status, 0) << seed;
}

TEST(ToolPlugin, CheckOutlivesWhatCrashesHangsAndLies) {
  const Json one = heddle_json({"plugin", "check", test_plugin("hostile_crash"), "--operator", "Segfault", "--seed", "3"}, 1);
  ASSERT_EQ(one["operators"].size(), 1u) << one;
  EXPECT_EQ(one["operators"][0]["status"], "fail");
  const Json exits = heddle_json({"plugin", "check", test_plugin("hostile_crash"), "--operator", "Exit"}, 1);
  EXPECT_NE(exits["operators"][0]["reason"].dump().find("ended the process with exit status 0"), std::string::npos) << exits;
  const Json stays = heddle_json({"plugin", "check", test_plugin("hostile_crash"), "--operator", "ClosesAndStays", "--timeout", "1"}, 1);
  EXPECT_EQ(stays["operators"][0]["reason"], "did not finish in 1 s") << stays;
  EXPECT_EQ(codes(heddle_json({"plugin", "check", example_plugin, "--operator", "NoSuch"}, 2)), Words{"unknown-name"});
  EXPECT_EQ(heddle({"plugin", "check", example_plugin, "--timeout", "0"}).status, 2);
  EXPECT_EQ(codes(heddle_json({"plugin", "check", "/nowhere.so"}, 3)), Words{"plugin-unreadable"});
}

TEST(ToolPlugin, CheckCatchesEachLie) {
  const Json object = heddle_json({"plugin", "check", test_plugin("liars")}, 1);
  std::map<std::string, Json> verdicts;
  for (const Json& one : object["operators"]) verdicts[one["operator"]] = one;
  const std::map<std::string, std::string> lies = {
      {"MirroredInPlace", "gives other bits with output 0 in place of input 0"},
      {"Places", "output 0 in a layout of its formats() with inputs (1 0): element 1 is"},
      {"NoOrder", "formats() gives input 0 of rank 0 a layout that is no order of its dimensions"},
      {"BreaksOnSome", "more than it can (f32[2, 3, 5, 4], seed 1)"},
      {"Holes", "leaves elements of its outputs unwritten (f32[7], seed 1)"},
      {"Overrun", "the kernel wrote past the end of output 0 (f32[], seed 1)"},
      {"LongScratch", "the kernel wrote past the end of its scratch"},
      {"Transposed", "gives output \\\"y\\\" the dims"},
      {"OneForAll", "the dims [], and declares it as [N]"},
      {"Found", "the dims that the run finds, and declares it as [N]"},
      {"TwoThreads", "gives other bits when it may have more threads"},
      {"BreaksMoved", "fails with element 0 of input 0 moved"},
      {"Rectified", "differs from its pointwise text max(x0, 0): output element "},
      {"Sum", "differs from its pointwise text add(x0, x1): output element "},
      {"GradientWrong", "of its gradient of input 1 is"},
      {"GradientUnknown", "its gradient: "},
      {"GradientNulls", "emits \\\"Product\\\" with inputs, outputs or attributes that are null"},
      {"GradientNullConstant", "adds a constant whose type is null"},
      {"GradientNoHandle", "its gradient of input 0 is a handle that stands for no value"},
      {"GradientGivesNothing", "its gradient gives none of its real inputs a gradient"},
      {"GradientThrows", "its gradient: threw an exception across the plugin boundary"},
      {"NodesWrong", "of its gradient of input 1 is"},
      {"NodesMisspelt", "its gradient writes \\\"dA\\\", which is no gradient of an input and which no later node reads"}};
  for (const auto& [type, reason] : lies) {
    const Json verdict = verdicts["liars::" + type];
    EXPECT_EQ(verdict["status"], "fail") << type;
    EXPECT_NE(verdict["reason"].dump().find(reason), std::string::npos) << verdict;
  }
  for (const char* type : {"liars::Mirrored", "liars::Product", "liars::Equal"})
    EXPECT_EQ(verdicts[type]["status"], "pass") << verdicts[type];
  EXPECT_EQ(object["totals"], Json({{"pass", 3}, {"fail", lies.size()}, {"not_run", 1}, {"partly", 0}}));
}

// A refusal is allowed; a failure, at whatever stage, fails the check.
TEST(ToolPlugin, CheckTellsRefusalsFromFailures) {
  struct Row {
    const char *type, *status, *reason;
  };
  const std::vector<Row> rows = {{"InferThrows", "fail", "exception of unknown type"},
                                 {"InferNegative", "fail", "[-5, 2], which is negative"},
                                 {"InferHuge", "not-run", "does not fit in memory"},
                                 {"InferLarge", "not-run", "more than 16.0 GiB"},
                                 {"InferRank", "fail", "rank 99"},
                                 {"InferDtype", "fail", "dtype"},
                                 {"InferBoundedAxis", "fail", "axis"},
                                 {"InferAbsent", "fail", "infer reads input 3, which is absent"},
                                 {"InferUnknownAttribute", "fail", "declares no attribute"},
                                 {"CostLies", "pass", ""},
                                 {"CostNegative", "fail", "its cost is -1 flops"},
                                 {"CostInfinite", "fail", "inf bytes"},
                                 {"CostThrows", "fail", "cannot count"},
                                 {"CostReadsAbsent", "fail", "input 7"},
                                 {"RawCostThrows", "fail", "cost threw an exception across"},
                                 {"ThrowsInCreate", "fail", "half-way through create"},
                                 {"FailsInCreate", "not-run", "create refuses"},
                                 {"NegativeTiles", "fail", "-3 tiles"},
                                 {"TwoTilesResumed", "fail", "a step that resumes has one"},
                                 {"TwoTilesStarted", "fail", "an asynchronous step has one"},
                                 {"PendsForNothing", "fail", "is pending, and waits for no subnet"},
                                 {"HugeScratch", "fail", "18446744073709551615 bytes of scratch"},
                                 {"HugePack", "fail", "was given no memory to pack"},
                                 {"CostIsNan", "fail", "a cost of nan"},
                                 {"ThrowsInPrepare", "fail", "out of memory"},
                                 {"ThrowsInFinish", "fail", "nothing to combine"},
                                 {"ThrowsException", "fail", "the kernel gave up"},
                                 {"ThrowsInt", "fail", "exception of unknown type"},
                                 {"FailsLoudly", "not-run", "AAAA"},
                                 {"FailsSilently", "fail", "failed with status 6 and no text"},
                                 {"FailsUnknown", "fail", "a status nobody defined"},
                                 {"Slow", "fail", "waits when it runs"},
                                 {"BadExtent", "fail", "wrote extent 1048576"},
                                 {"RawRunThrows", "fail", "threw an exception across"},
                                 {"RawCreateThrows", "fail", "create threw an exception across"},
                                 {"RawCreateFails", "fail", "refuses without saying why"},
                                 {"RawDestroyThrows", "pass", ""},
                                 {"RawPrepareThrows", "fail", "prepare threw an exception across"}};
  const Json object = heddle_json({"plugin", "check", test_plugin("hostile_kernels")}, 1);
  ASSERT_EQ(object["operators"].size(), rows.size()) << "an operator without a row";
  for (size_t i = 0; i < rows.size(); ++i) {
    const Json& one = object["operators"][i];
    EXPECT_EQ(one["operator"], std::string("hostile::") + rows[i].type);
    EXPECT_EQ(one["status"], rows[i].status) << one;
    EXPECT_NE(one["reason"].dump().find(rows[i].reason), std::string::npos) << one;
  }
}

TEST(ToolPlugin, CheckSaysWhatItCouldNotRun) {
  const Words arguments = {"plugin", "check", test_plugin("liars"), "--operator", "Choosy"};
  const Json object = heddle_json(arguments);
  EXPECT_EQ(object["operators"][0]["status"], "not-run");
  EXPECT_NE(object["operators"][0]["reason"].dump().find("f32[2, 3, 5, 4], seed 1: x has rank 4, expected 7"), std::string::npos) << object;
  EXPECT_EQ(object["totals"], Json({{"pass", 0}, {"fail", 0}, {"not_run", 1}, {"partly", 0}}));
  EXPECT_NE(heddle(arguments).out.find("0 of 1 operators passed, 1 not run"), std::string::npos);
  Words strict = arguments;
  strict.push_back("--strict");
  EXPECT_EQ(heddle(strict).status, 1);
}

TEST(ToolPlugin, CheckSaysHowToDoItAgain) {
  const Words arguments = {"plugin", "check", test_plugin("liars"), "--operator", "BreaksOnSome", "--seed", "7"};
  const std::string said = heddle(arguments).out;
  EXPECT_NE(said.find(", seed 7)"), std::string::npos) << said;
  EXPECT_NE(said.find("again: heddle plugin check " + test_plugin("liars") + " --operator BreaksOnSome --seed 7"), std::string::npos)
      << said;
}

TEST(ToolPlugin, NewWritesAProject) {
  const TemporaryFolder folder;
  const Outcome outcome = Tool({"plugin", "new", "mine", "--json"}).in(folder.path()).run();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  const Json object = checked_object(outcome, "plugin_new.json");
  for (const Json& file : object["files"]) EXPECT_TRUE(std::filesystem::exists(folder / file)) << file;
  EXPECT_EQ(Tool({"plugin", "new", "mine"}).in(folder.path()).run().status, 2) << "it is there already";
  EXPECT_EQ(Tool({"plugin", "new", "../mine"}).in(folder.path()).run().status, 2);
}

TEST(ToolPlugin, NewRefusesNamesOfWhatIsThere) {
  const TemporaryFolder folder;
  for (const char* const name : {"cpu", "sim", "cuda", "image", "nccl", "heddle"}) {
    const Outcome outcome = Tool({"plugin", "new", name}).in(folder.path()).run();
    EXPECT_EQ(outcome.status, 2) << name;
    EXPECT_NE(outcome.err.find("is the name of "), std::string::npos) << outcome.err;
    EXPECT_NE(outcome.err.find(std::string("my_") + name), std::string::npos) << outcome.err;
    EXPECT_FALSE(std::filesystem::exists(folder / name));
  }
}

// Whether it builds and works is tested by package.new_plugin_cuda.
TEST(ToolPlugin, NewWithCudaWritesAKernelForGpus) {
  const TemporaryFolder folder;
  const Outcome outcome = Tool({"plugin", "new", "mine", "--cuda", "--json"}).in(folder.path()).run();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(checked_object(outcome, "plugin_new.json")["files"],
            Json::array({"mine/CMakeLists.txt", "mine/mine.cc", "mine/README.md", "mine/mine_cuda.h", "mine/mine_cuda.cu"}));
  ASSERT_EQ(Tool({"plugin", "new", "plain"}).in(folder.path()).run().status, 0);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "mine"))
    EXPECT_EQ(read_text(entry.path()).find('@'), std::string::npos) << entry.path() << " has a mark that nothing took the place of";
  for (const auto& entry : std::filesystem::directory_iterator(folder / "plain")) {
    const std::string text = read_text(entry.path());
    EXPECT_EQ(text.find('@'), std::string::npos) << entry.path();
    EXPECT_EQ(text.find("cuda"), std::string::npos) << entry.path();
  }
}

TEST(ToolPlugin, RunComputesOneOperator) {
  const TemporaryFolder folder;
  write_text(folder / "x.npy", npy("2, 2,", {1, -2, 3, -4}));
  EXPECT_EQ(heddle({"plugin", "run", "Relu", "--input", (folder / "x.npy").string()}).out, "f32[2, 2] =\n  1 0\n  3 0\n");
  EXPECT_EQ(heddle({"plugin", "run", "example::Scale", "--plugin", example_plugin, "--input", (folder / "x.npy").string(), "--attribute",
                    "factor=2"})
                .out,
            "f32[2, 2] =\n  2 -4\n  6 -8\n");
  const auto of = [&](Words more) {
    Words arguments = {"plugin", "run", "Abs", "--shape", "2x3"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return heddle_json(arguments)["outputs"][0];
  };
  EXPECT_EQ(of({})["shape"], Json({2, 3}));
  EXPECT_EQ(of({}), of({"--seed", "1"}));
  EXPECT_NE(of({}), of({"--seed", "2"}));
  EXPECT_EQ(of({"--dtype", "f64"})["dtype"], "f64");
  EXPECT_EQ(codes(heddle_json({"plugin", "run", "Relu", "--shape", "2x"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json({"plugin", "run", "Relu", "--shape", "2", "--attribute", "no=1"}, 3)), Words{"unknown-attribute"});
  const Outcome unknown = heddle({"plugin", "run", "no_exceptions::Dot", "--plugin", test_plugin("no_exceptions"), "--attribute", "no=1"});
  EXPECT_NE(unknown.err.find("it has none"), std::string::npos) << unknown.err;
  const Outcome other = heddle({"plugin", "run", "example::Scale", "--plugin", example_plugin, "--attribute", "no=1"});
  EXPECT_NE(other.err.find("it has: factor"), std::string::npos) << other.err;
  EXPECT_EQ(codes(heddle_json({"plugin", "run", "Reluu"}, 3)), Words{"unknown-operator"});
}

TEST(ToolPlugin, RunTakesADtypeForEachInputAndExamples) {
  const auto of = [](Words more) {
    Words arguments = {"plugin", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return heddle(arguments).out;
  };
  const std::string picked = of({"Gather", "--shape", "3x4", "--shape", "2", "--dtype", "f32", "--dtype", "i64", "--attribute", "axis=1"});
  EXPECT_EQ(picked.rfind("f32[3, 2] =\n", 0), 0u) << picked;  // indices are drawn below their bound
  EXPECT_EQ(of({"Gather", "--example", "f32[3] = 1 2 3, i64[2] = 2 0; axis=0"}), "f32[2] = 3 1\n");
  EXPECT_EQ(of({"Transpose", "--shape", "2x3", "--attribute", "perm=1,0"}),
            of({"Transpose", "--shape", "2x3", "--attribute", "perm=[1,0]"}));
  EXPECT_EQ(of({"Gelu", "--shape", "3", "--attribute", "approximate=tanh"}),
            of({"Gelu", "--shape", "3", "--attribute", "approximate=\"tanh\""}));
  const auto refused = [](Words more, int status) {
    Words arguments = {"plugin", "run"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return codes(heddle_json(arguments, status));
  };
  EXPECT_EQ(refused({"Gather", "--shape", "3", "--dtype", "f32", "--dtype", "i64"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(refused({"Gather", "--shape", "3", "--dtype", "f31"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(refused({"Gather", "--shape", "3", "--example", "f32[3]"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(refused({"Gather", "--example", "f32[3] = 1 2"}, 3), Words{"syntax"});
  EXPECT_EQ(refused({"Transpose", "--shape", "2x3", "--attribute", "perm=1,x"}, 3), Words{"syntax"});
}

TEST(ToolPlugin, CheckExaminesOneCall) {
  const TemporaryFolder folder;
  write_text(folder / "x.npy", npy("2, 2,", {1, -2, 3, -4}));
  const auto verdict = [&](Words more, int status) {
    Words arguments = {"plugin", "check", cpu_plugin, "--operator", "Gather"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return heddle_json(arguments, status);
  };
  const auto of = [&](Words more, int status) { return verdict(std::move(more), status)["operators"][0]; };
  const std::string data = "f32[3] = 1 2 3, i64[2] = 2 0";
  EXPECT_EQ(of({"--example", data + " -> f32[2] = 3 1"}, 0)["status"], "pass");
  EXPECT_EQ(of({"--example", data + " -> f32[2] = 3 4"}, 1)["mistake"], "value");
  EXPECT_EQ(of({"--example", data + "; axis=1 -> f32[2]"}, 1)["mistake"], "example");
  EXPECT_EQ(of({"--example", data + "; axis=1"}, 0)["status"], "not-run") << "it may refuse what is not said to be its example";
  EXPECT_EQ(of({"--input", (folder / "x.npy").string(), "--shape", "3", "--dtype", "i64", "--attribute", "axis=1"}, 0)["status"], "pass");
  EXPECT_EQ(codes(verdict({"--shape", "3", "--shape", "x"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json({"plugin", "check", cpu_plugin, "--shape", "3"}, 2)), Words{"invalid-argument"});
  const std::string again = heddle({"plugin", "check", cpu_plugin, "--operator", "Gather", "--example", data + " -> f32[2] = 3 4"}).out;
  EXPECT_NE(again.find("--seed 1 --example \"" + data + " -> f32[2] = 3 4\""), std::string::npos) << again;
}

TEST(ToolPlugin, TheOperatorOfTheReadmeIsShortAndWhole) {
  // This is the first block of C++ in the README.
  const std::string readme = read_text(HEDDLE_SOURCE_DIR "/README.md");
  const size_t begin = readme.find("```cpp\n") + 7;
  const std::string code = readme.substr(begin, readme.find("```", begin) - begin);
  EXPECT_LE(std::count(code.begin(), code.end(), '\n'), 25);
  const TemporaryFolder folder;
  write_text(folder / "readme.cc", code);
  const std::string so = (folder / "readme.so").string();
  const std::string compile = HEDDLE_CXX " -std=c++17 -O1 -fPIC -shared -Wall -Wextra -Werror -I" HEDDLE_SOURCE_DIR "/runtime/include -o " +
                              so + " " + (folder / "readme.cc").string();
  ASSERT_EQ(std::system(compile.c_str()), 0) << compile;
  // Schema and shape rule: it runs on any shape. In-place and gradient: declared by its schema in the loaded plugin. Kernel: it computes.
  const std::string name = "example::Scale";
  write_text(folder / "x.npy", npy("2,", {1, -2}));
  EXPECT_EQ(heddle({"plugin", "run", name, "--plugin", so, "--input", (folder / "x.npy").string(), "--attribute", "factor=3"}).out,
            "f32[2] = 3 -6\n");
  EXPECT_EQ(heddle_json({"plugin", "run", name, "--plugin", so, "--shape", "2x3x4"})["outputs"][0]["shape"], Json({2, 3, 4}));
  EXPECT_EQ(heddle_json({"plugin", "check", so})["operators"][0]["reason"], nullptr)
      << "the author's suite compares the gradient with differences";
  for (const char* part : {".in(", ".out(", "same_as(", ".in_place(", ".gradient(", ".cpu<"})
    EXPECT_NE(code.find(part), std::string::npos) << part;
  // In place: a chain of three uses one buffer.
  const std::string domain = R"(, "domain": "example")";
  const std::string nodes =
      node("Exp", R"("x")", "a") + ", " + node("Scale", R"("a")", "b", domain) + ", " + node("Scale", R"("b")", "c", domain);
  write_text(folder / "chain.json", net_text("chain", R"("x")", R"("c")", input("x", "1024"), nodes));
  const Json plan = heddle_json({"plan", (folder / "chain.json").string(), "--plugin", so});
  ASSERT_EQ(plan["steps"].size(), 3u);
  for (const Json& step : plan["steps"]) EXPECT_EQ(step["outputs"][0]["offset_bytes"], plan["steps"][0]["outputs"][0]["offset_bytes"]);
}

}  // namespace
}  // namespace heddle::tool_tests
