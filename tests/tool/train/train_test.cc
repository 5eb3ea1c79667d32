// heddle train: nets that are trained on arrays, the files that this writes, and what is refused.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <regex>
#include <sstream>

#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

TEST(ToolTrain, ALossFallsAndIsWrittenDownStepByStep) {
  const Samples samples;
  const std::string log = samples.file("log.jsonl"), curve = samples.file("curve.svg");
  const Json object = heddle_json(samples.train({"--log", log, "--curve", curve}));
  EXPECT_EQ(object["train"]["steps"], 20);
  EXPECT_EQ(object["train"]["samples"], 8);
  EXPECT_LT(object["train"]["last_loss"].get<double>(), 0.2 * object["train"]["first_loss"].get<double>());
  const std::vector<Json> lines = lines_of(log);
  ASSERT_EQ(lines.size(), 20u);
  EXPECT_EQ(lines[19]["step"], 20);
  EXPECT_EQ(lines[19]["loss"], object["train"]["last_loss"]);
  EXPECT_EQ(lines[19]["learning_rate"], 0.5);
  EXPECT_TRUE(lines[19]["step_ns"].is_number_integer());
  EXPECT_TRUE(lines[19]["read_ns"].is_number_integer());
  EXPECT_NE(read_text(curve).find("<polyline"), std::string::npos);
}

TEST(ToolTrain, ACurveOfManyStepsHasTheFirstAndTheLast) {
  const Samples samples;
  const std::string curve = samples.file("curve.svg");
  heddle_json(samples.train({"--curve", curve, "--steps", "9003"}));
  const std::string svg = read_text(curve);
  EXPECT_NE(svg.find(">step<"), std::string::npos);
  EXPECT_NE(svg.find(">8000<"), std::string::npos);
  EXPECT_LT(svg.size(), 40000u);  // every fourth of them
}

TEST(ToolTrain, WhatWasLearnedIsSavedAndGoesOn) {
  const Samples samples;
  const std::string trained = samples.file("trained.heddle"), again = samples.file("again.heddle");
  const Json first = heddle_json(samples.train({"-o", trained}));
  const Words words = {"train",   trained,
                       "--steps", "20",
                       "--batch", "4",
                       "--data",  "x=" + samples.file("x.npy"),
                       "--data",  "labels=" + samples.file("labels.npy"),
                       "-o",      again};
  const Json second = heddle_json(words);
  EXPECT_LT(second["train"]["first_loss"].get<double>(), first["train"]["first_loss"].get<double>());
  EXPECT_EQ(heddle_json({"inspect", trained, "--net", "test"})["net"]["name"], "test");
  const Json run = heddle_json(
      {"run", trained, "--net", "test", "--input", "x=" + samples.file("x.npy"), "--input", "labels=" + samples.file("labels.npy")});
  EXPECT_TRUE(run["outputs"].contains("loss"));
}

TEST(ToolTrain, TestsAreMeansOverAllSamples) {
  const Samples samples;
  const std::string log = samples.file("log.jsonl");
  const Json object = heddle_json(samples.train({"--eval-every", "10", "--log", log, "--batch", "3", "--test-data",
                                                 "x=" + samples.file("x.npy"), "--test-data", "labels=" + samples.file("labels.npy")}));
  const std::vector<Json> lines = lines_of(log);
  ASSERT_EQ(lines.size(), 22u);  // 8 samples are two batches of three and one of two
  EXPECT_EQ(lines[10]["step"], 10);
  EXPECT_GT(lines[10]["test_loss"].get<double>(), lines[21]["test_loss"].get<double>());
  EXPECT_EQ(object["train"]["test"]["loss"], lines[21]["test_loss"]);
}

// Columns of a table are what arrays of their numbers are.
TEST(ToolTrain, LearnsFromATable) {
  const Samples samples;
  std::string table = "name,label,x0,x1\n";
  for (int i = 0; i < 8; ++i)
    table += std::string("s") + std::to_string(i) + "," + std::to_string(i % 2) + (i % 2 == 0 ? ",1" : ",-1") + ",0.5\n";
  const std::string file = samples.file("table.csv"), from_table = samples.file("table.json"), from_arrays = samples.file("arrays.json");
  write_text(file, table);
  const Words words = {"train",
                       samples.net,
                       "--data",
                       "x=" + file + ":x0,x1",
                       "--data",
                       "labels=" + file + ":label",
                       "--batch",
                       "4",
                       "--learning-rate",
                       "0.5",
                       "--steps",
                       "20",
                       "-o",
                       from_table};
  ASSERT_EQ(heddle(words).status, 0) << heddle(words).err;
  ASSERT_EQ(heddle(samples.train({"-o", from_arrays})).status, 0);
  EXPECT_EQ(read_text(from_table), read_text(from_arrays));
  const Json run =
      heddle_json({"run", from_table, "--net", "test", "--input", "x=" + file + ":x0,x1", "--input", "labels=" + file + ":label"});
  EXPECT_TRUE(run["outputs"].contains("loss"));
  EXPECT_EQ(codes(heddle_json(
                {"train", samples.net, "--data", "x=" + file + ":x0,name", "--data", "labels=" + file + ":label", "--steps", "1"}, 3)),
            Words{"syntax"});
  const Json classes_with_points =
      heddle_json({"train", samples.net, "--data", "x=" + file + ":x0,x1", "--data", "labels=" + file + ":x1", "--steps", "1"}, 3);
  EXPECT_EQ(codes(classes_with_points), Words{"dtype-mismatch"});
  EXPECT_EQ(classes_with_points["diagnostics"][0]["hint"], "write its numbers without a point: 3, not 3.0");
}

// Eight samples in batches of three are two steps of an epoch, or three with the last two samples.
TEST(ToolTrain, EpochsEndAsTheyAreAskedTo) {
  const Samples samples;
  const auto steps = [&](const Words& more) {
    Words words = {"train",   samples.net, "--data",     "x=" + samples.file("x.npy"), "--data", "labels=" + samples.file("labels.npy"),
                   "--batch", "3",         "--no-output"};
    words.insert(words.end(), more.begin(), more.end());
    return heddle_json(words)["train"]["steps"];
  };
  EXPECT_EQ(steps({"--epochs", "5"}), 10);
  EXPECT_EQ(steps({"--epochs", "5", "--last-batch", "keep"}), 15);
  EXPECT_EQ(steps({"--epochs", "5", "--steps", "4"}), 4);
  EXPECT_EQ(steps({"--epochs", "5", "--steps", "40"}), 10);
  const Words neither = {"train", samples.net, "--data", "x=" + samples.file("x.npy"), "--data", "labels=" + samples.file("labels.npy")};
  EXPECT_EQ(codes(heddle_json(neither, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json(samples.train({"--last-batch", "pad"}), 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(heddle_json(samples.train({"--weights", "w"}), 2)), Words{"unknown-name"});
  EXPECT_EQ(heddle(samples.train({"--last-batch", "fill"})).status, 2);
}

TEST(ToolTrain, TestsComeAfterStepsOrEpochs) {
  const Samples samples;
  const std::string log = samples.file("log.jsonl");
  const auto tested = [&](const Words& more) {
    Words words = samples.train({"--test-data", "x=" + samples.file("x.npy"), "--test-data", "labels=" + samples.file("labels.npy"),
                                 "--batch", "3", "--steps", "10", "--no-output", "--log", log});
    words.insert(words.end(), more.begin(), more.end());
    EXPECT_EQ(heddle(words).status, 0) << heddle(words).err;
    std::vector<int> steps;
    for (const Json& line : lines_of(log))
      if (line.contains("test_loss")) steps.push_back(line["step"]);
    return steps;
  };
  EXPECT_EQ(tested({"--eval-every", "4"}), (std::vector<int>{4, 8, 10}));
  EXPECT_EQ(tested({"--eval-epochs", "2"}), (std::vector<int>{4, 8, 10})) << "two steps make an epoch";
  EXPECT_EQ(tested({"--eval-epochs", "2", "--last-batch", "keep"}), (std::vector<int>{6, 10}));
  EXPECT_EQ(tested({"--eval-epochs", "1000000000000000000"}), std::vector<int>{10});
  EXPECT_EQ(heddle(samples.train({"--eval-epochs", "2", "--eval-every", "4"})).status, 2);
}

// Whatever the loss is called, the picture has its line of tests too.
TEST(ToolTrain, ACurveHasTheTestsOfTheLossThatIsNamed) {
  const Samples samples;
  const std::string curve = samples.file("curve.svg"), net = samples.file("renamed.json");
  write_text(net, std::regex_replace(read_text(samples.net), std::regex("\"loss\""), "\"error\""));
  const auto has_tests = [&](const Words& more) {
    Words words = {"train",   net,
                   "--loss",  "error",
                   "--batch", "4",
                   "--steps", "20",
                   "--data",  "x=" + samples.file("x.npy"),
                   "--data",  "labels=" + samples.file("labels.npy"),
                   "--curve", curve};
    words.insert(words.end(), more.begin(), more.end());
    heddle_json(words);
    return read_text(curve).find(">test loss, last ") != std::string::npos;
  };
  EXPECT_FALSE(has_tests({}));
  EXPECT_TRUE(has_tests({"--test-data", "x=" + samples.file("x.npy"), "--test-data", "labels=" + samples.file("labels.npy")}));
}

TEST(ToolTrain, TheSameSeedIsTheSameTrainingOnAnyNumberOfThreads) {
  const Samples samples;
  std::vector<std::string> files;
  for (const char* threads : {"1", "2", "3"}) {
    files.push_back(samples.file((std::string("trained") + threads + ".heddle").c_str()));
    ASSERT_EQ(heddle(samples.train({"--seed", "5", "--threads", threads, "-o", files.back()})).status, 0);
    EXPECT_EQ(read_text(files.back()), read_text(files.front())) << threads;
  }
  ASSERT_EQ(heddle(samples.train({"--seed", "6", "-o", samples.file("other.heddle")})).status, 0);
  EXPECT_NE(read_text(samples.file("other.heddle")), read_text(files.front()));
}

TEST(ToolTrain, EveryOptimizerLearns) {
  const Samples samples;
  const std::string help = heddle({"train", "--help"}).out;
  std::smatch listed;
  ASSERT_TRUE(std::regex_search(help, listed, std::regex("--optimizer \\S+ +([a-z, ]+)"))) << help;
  std::istringstream names(listed[1].str());
  int count = 0;
  for (std::string optimizer; names >> optimizer; ++count) {
    if (optimizer.back() == ',') optimizer.pop_back();
    const Json object = heddle_json(samples.train({"--optimizer", optimizer, "--learning-rate", "0.05", "--set", "weight_decay=0.0001"}));
    ASSERT_TRUE(object["train"].is_object()) << optimizer << object;
    EXPECT_LT(object["train"]["last_loss"].get<double>(), object["train"]["first_loss"].get<double>()) << optimizer;
  }
  EXPECT_GE(count, 7) << help;
}

TEST(ToolTrain, WhatIsWrongIsSaid) {
  const Samples samples;
  const auto says = [&](const Words& more, int status) { return codes(heddle_json(samples.train(more), status)); };
  EXPECT_EQ(says({"--optimizer", "sdg"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--schedule", "line"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--set", "momentum=x"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--batch", "9"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--average", "1"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--loss", "nothing"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--dense", "nothing"}, 2), Words{"unknown-name"});
  for (const char* schedule : {"polynomial(10, -1)", "polynomial(10, 1, -1)", "cosine(10, -1)", "cosine(0)", "step(0, 0.1)"})
    EXPECT_EQ(says({"--schedule", schedule}, 2), Words{"invalid-argument"}) << schedule;
  for (const Words& option : {Words{"--learning-rate", ""}, Words{"--learning-rate", "1e39"}, Words{"--clip-norm", ""},
                              Words{"--average", ""}, Words{"--warm-up", "99999999999999999999"}, Words{"--steps", "99999999999999999999"}})
    EXPECT_EQ(heddle(samples.train(option)).status, 2) << option[0];
  EXPECT_EQ(codes(heddle_json({"train", samples.net, "--steps", "1", "--data", "synthetic", "--samples", "72057594037927936"}, 4)),
            Words{"limit-exceeded"});
  EXPECT_EQ(says({"--net", "other"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--test", "other"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--test", "train"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--test", "test"}, 2), Words{"invalid-argument"});  // no test data is given
  EXPECT_EQ(says({"--init", "other"}, 2), Words{"unknown-name"});
  for (const Words& option : {Words{"-o", ""}, Words{"--log", ""}, Words{"--curve", ""}, Words{"--steps", "0"}, Words{"--samples", "0"}})
    EXPECT_EQ(heddle(samples.train(option)).status, 2) << option[0];
  EXPECT_EQ(says({"--memory-limit", "much"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--memory-limit", "1B"}, 4), Words{"limit-exceeded"});
  EXPECT_EQ(says({"--data", "y=" + samples.file("x.npy")}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"-o", samples.net}, 2), Words{"invalid-argument"});
  for (const Words& option : {
           Words{"--accumulate", "2"},
           Words{"--precision", "bf16"},
       })
    EXPECT_EQ(says(option, 2), Words{"not-implemented"}) << option[0];
  const Words missing = {"train", samples.net, "--steps", "1", "--data", "x=" + samples.file("x.npy")};
  EXPECT_EQ(codes(heddle_json(missing, 2)), Words{"missing-input"});
  Words fewer = missing;
  fewer.insert(fewer.end(), {"--data", "labels=" + samples.file("few.npy")});
  EXPECT_EQ(codes(heddle_json(fewer, 3)), Words{"shape-mismatch"});
}

// The weights of the net that is read are not overwritten, and a file that can't be written is found before the first step.
TEST(ToolTrain, FilesAreLookedAtBeforeTheFirstStep) {
  const TemporaryFolder folder;
  const std::string net = (folder / "net.heddle").string(), weights = (folder / "net.safetensors").string();
  ASSERT_EQ(heddle({"model", "lenet", "--train", "-o", net}).status, 0);
  const std::string before = read_text(weights);
  const auto says = [&](const Words& more, int status) {
    Words words = {"train", net, "--steps", "1", "--batch", "2", "--data", "synthetic", "--samples", "4"};
    words.insert(words.end(), more.begin(), more.end());
    return codes(heddle_json(words, status));
  };
  EXPECT_EQ(says({"-o", (folder / "net.json").string()}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--log", weights}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--curve", weights}, 2), Words{"invalid-argument"});
  EXPECT_EQ(read_text(weights), before);
  EXPECT_EQ(says({"-o", "/nonexistent/a.heddle"}, 3), Words{"file-unwritable"});
  EXPECT_EQ(says({"--curve", "/nonexistent/a.svg"}, 3), Words{"file-unwritable"});
  std::filesystem::create_directory(folder / "taken.safetensors");
  EXPECT_EQ(says({"-o", (folder / "taken.heddle").string()}, 3), Words{"file-unwritable"});
  // The net itself says how it is trained.
  for (const Words& option : {Words{"--optimizer", "adam"}, Words{"--learning-rate", "2"}, Words{"--clip-norm", "1"},
                              Words{"--set", "momentum=0.5"}, Words{"--average", "0.9"}, Words{"--gradient-norm"}})
    EXPECT_EQ(says(option, 2), Words{"invalid-argument"}) << option[0];
}

// A failure before anything was learned leaves the file of an earlier training alone.
TEST(ToolTrain, AnOutputStaysAsItWasUnlessAStepWasMade) {
  const Samples samples;
  const std::string trained = samples.file("trained.heddle"), weights = samples.file("trained.safetensors");
  ASSERT_EQ(heddle(samples.train({"--steps", "2", "-o", trained})).status, 0);
  const std::string net = read_text(trained), learned = read_text(weights);
  const auto fails = [&](Words more, int status) {
    more.insert(more.end(), {"--steps", "2", "-o", trained});
    EXPECT_EQ(heddle(samples.train(more)).status, status);
    EXPECT_EQ(read_text(trained), net);
    EXPECT_EQ(read_text(weights), learned);
  };
  fails({"--log", samples.file("missing/log.jsonl")}, 3);
  fails({"--loss", "logits"}, 2);
}

// A net gives w its first content. It is not run on trained variables.
TEST(ToolTrain, AnInitNetIsRunBeforeTheFirstStep) {
  const Samples samples;
  const std::string net = samples.file("with_init.json"), trained = samples.file("trained.heddle");
  std::string text = read_text(samples.net);
  const std::string nets = "\"nets\": [";
  text.insert(text.find(nets) + nets.size(), R"json({"name": "init", "inputs": [], "outputs": [],
  "variables": [{"name": "w", "dtype": "f32", "dims": [2, 2], "trainable": true}],
  "values": [{"name": "w", "kind": "variable", "variable": "w", "version": 0},
   {"name": "zeros", "kind": "constant", "dtype": "f32", "dims": [2, 2], "data": [0, 0, 0, 0]},
   {"name": "next", "kind": "variable", "variable": "w", "version": 1}],
  "nodes": [{"name": "assign", "type": "Assign", "domain": "heddle", "inputs": ["w", "zeros"], "outputs": ["next"]}]}, )json");
  write_text(net, text);
  const Words data = {"--batch", "4", "--data", "x=" + samples.file("x.npy"), "--data", "labels=" + samples.file("labels.npy")};
  const auto train = [&](const std::string& file, Words more, int status) {
    Words words = {"train", file, "--steps", "1"};
    words.insert(words.end(), data.begin(), data.end());
    words.insert(words.end(), more.begin(), more.end());
    return heddle_json(words, status);
  };
  EXPECT_NE(train(net, {"--net", "train"}, 0)["train"]["first_loss"].get<float>(), std::log(2.0F));
  // This is the loss of logits that are all zero.
  EXPECT_FLOAT_EQ(train(net, {"--init", "init", "-o", trained}, 0)["train"]["first_loss"].get<float>(), std::log(2.0F));
  EXPECT_EQ(codes(train(trained, {"--init", "init"}, 3)), Words{"hazard"});
  EXPECT_EQ(codes(train(net, {"--init", "test"}, 2)), Words{"missing-input"});
}

// A terminal shows the loss also of steps for which no line is written.
TEST(ToolTrain, TheLossIsShownWhileItLearns) {
  HEDDLE_NEEDS_TERMINAL();
  const Samples samples;
  const Outcome outcome = Tool(samples.train({"--steps", "4000"})).on_terminal().run();
  EXPECT_NE(outcome.err.find("step 1 of 4000: loss "), std::string::npos) << outcome.err;
  EXPECT_TRUE(std::regex_search(outcome.err, std::regex("step [0-9]+ of 4000: loss [0-9.e-]+, [0-9]+ samples/s[^\n]*, [0-9]+ s left")))
      << outcome.err;
  EXPECT_EQ(outcome.out.find(" of 4000"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("step 400: loss "), std::string::npos) << outcome.out;
}

TEST(ToolTrain, AnInterruptionSavesWhatWasLearned) {
  for (const char* const commit : {"late", "early"}) {
    const Samples samples;
    const std::string log = samples.file("log.jsonl"), trained = samples.file("trained.heddle");
    Tool tool(samples.train({"--steps", "1000000000", "--commit", commit, "--log", log, "-o", trained}));
    tool.interrupt(SIGINT,
                   [&](const std::string&, pid_t) { return std::filesystem::exists(log) && std::filesystem::file_size(log) > 4000; });
    const Outcome outcome = tool.run();
    EXPECT_EQ(outcome.status, 130) << commit << ": " << outcome.err;
    const std::string loss = samples.file("loss.npy");
    heddle_json({"run", trained, "--net", "test", "--input", "x=" + samples.file("x.npy"), "--input",
                 "labels=" + samples.file("labels.npy"), "--output", "loss=" + loss});
    EXPECT_GT(lines_of(log).size(), 20u);
    EXPECT_LT(npy_values(loss)[0], 0.2 * lines_of(log)[0]["loss"].get<double>()) << commit;
  }
}

// A training without an output file is lost: one warning says so while there is time.
TEST(ToolTrain, WithoutAnOutputAWarningComesBeforeTheFirstStep) {
  const Samples samples;
  const Outcome lost = heddle(samples.train({"--steps", "2"}));
  EXPECT_EQ(lost.status, 0) << lost.err;
  EXPECT_EQ(
      lost.err,
      "warning[invalid-argument]: nothing of what is learned will be kept, at the end or when it is interrupted: no file is named for "
      "it; name one with -o NET.heddle, or say --no-output where that is meant\n");
  EXPECT_EQ(heddle(samples.train({"--steps", "2", "--werror"})).status, 1);
  for (const Words& meant : {Words{"--no-output"}, Words{"-o", samples.file("trained.heddle")}}) {
    Words words = meant;
    words.insert(words.end(), {"--steps", "2", "--werror"});
    const Outcome outcome = heddle(samples.train(words));
    EXPECT_EQ(outcome.status, 0) << meant[0] << outcome.err;
    EXPECT_EQ(outcome.err, "") << meant[0];
  }
  EXPECT_EQ(heddle(samples.train({"--no-output", "-o", samples.file("trained.heddle")})).status, 2);
  const std::string log = samples.file("log.jsonl"), warning = "nothing of what is learned will be kept";
  Tool tool(samples.train({"--steps", "1000000000", "--log", log}));
  tool.interrupt(SIGINT, [&](const std::string& err, pid_t) {
    return err.find(warning) != std::string::npos && std::filesystem::exists(log) && std::filesystem::file_size(log) > 4000;
  });
  const Outcome interrupted = tool.run();
  EXPECT_EQ(interrupted.status, 130) << interrupted.err;
  EXPECT_EQ(interrupted.err.find(warning), interrupted.err.rfind(warning)) << interrupted.err;
}

TEST(ToolTrain, UnsignedIntegersAreLabels) {
  const Samples samples;
  std::vector<uint64_t> labels = {0, 1, 0, 1, 0, 1, 0, 1};
  const auto with = [&] {
    samples.write("u64.npy", "<u8", "8,", labels.data(), 8 * sizeof(uint64_t));
    Words words = samples.train({});
    std::replace(words.begin(), words.end(), "labels=" + samples.file("labels.npy"), "labels=" + samples.file("u64.npy"));
    return words;
  };
  const Json narrow = heddle_json(samples.train({}));
  EXPECT_EQ(heddle_json(with())["train"]["last_loss"], narrow["train"]["last_loss"]);
  labels[3] = uint64_t{1} << 63;
  const Json refused = heddle_json(with(), 2);
  EXPECT_EQ(codes(refused), Words{"invalid-argument"});
  EXPECT_NE(refused.dump().find("element 3 is 9223372036854775808, which no i64 is"), std::string::npos) << refused;
}

// An error of a step names its samples by their places in the file.
TEST(ToolTrain, DataThatIsWrongIsFound) {
  const Samples samples;
  const auto says = [&](int status) { return heddle_json(samples.train({"--steps", "2", "--batch", "8"}), status).dump(); };
  std::vector<int64_t> labels = {0, 1, 0, 1, 0, 9, 0, 1};
  samples.write("labels.npy", "<i8", "8,", labels.data(), 8 * sizeof(int64_t));
  const std::string label = says(1);
  std::smatch found;
  ASSERT_TRUE(std::regex_search(label, found, std::regex("label 9 at position ([0-9]).*of samples ([0-9, ]+)"))) << label;
  std::istringstream places(std::regex_replace(found[2].str(), std::regex(","), " "));
  std::vector<int> order;
  for (int place = 0; places >> place;) order.push_back(place);
  ASSERT_EQ(order.size(), 8u);
  EXPECT_EQ(order[static_cast<size_t>(std::stoi(found[1]))], 5);
  EXPECT_NE(label.find("in sample 5 of input \\\"labels\\\""), std::string::npos) << label;
  labels[5] = 1;
  samples.write("labels.npy", "<i8", "8,", labels.data(), 8 * sizeof(int64_t));
  std::vector<float> x(16, 1);
  x[7] = std::numeric_limits<float>::quiet_NaN();
  samples.write("x.npy", "<f4", "8, 2", x.data(), 16 * sizeof(float));
  const std::string number = says(1);
  EXPECT_NE(number.find("x\\\" has nan in sample 3"), std::string::npos) << number;
  EXPECT_NE(number.find("mend the data"), std::string::npos) << number;
}

// A mask that is not trained may be infinite.
TEST(ToolTrain, WhatWasInfiniteBeforeMayBeSo) {
  const Samples samples;
  const std::string net = samples.file("masked.json"), trained = samples.file("trained.heddle");
  std::string text = read_text(samples.net);
  const auto replace = [&](const std::string& from, const std::string& to) {
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
  };
  replace(R"("variables": [)", R"("variables": [{"name": "mask", "dtype": "f32", "dims": [2], "data": ["-inf", 1]}, )");
  replace(R"({"name": "w", "kind": "variable", "variable": "w", "version": 0}],)",
          R"({"name": "mask", "kind": "variable", "variable": "mask", "version": 0},
             {"name": "w", "kind": "variable", "variable": "w", "version": 0}],)");
  replace(R"("nodes": [)", R"("nodes": [{"name": "larger", "type": "Max", "inputs": ["x", "mask"], "outputs": ["larger"]}, )");
  replace(R"("inputs": ["x", "w"])", R"("inputs": ["larger", "w"])");
  write_text(net, text);
  const Words words = {"train",   net,
                       "--steps", "2",
                       "--batch", "4",
                       "--data",  "x=" + samples.file("x.npy"),
                       "--data",  "labels=" + samples.file("labels.npy"),
                       "-o",      trained};
  const Outcome outcome = heddle(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(std::filesystem::exists(trained));
}

// The weights have three rows, so that no other number of samples fits.
TEST(ToolTrain, ANetMayFitOneBatchAlone) {
  const Samples samples;
  const std::string net = samples.file("three.json");
  write_text(net, R"json({"heddle": 1, "name": "train", "inputs": ["x"], "outputs": ["loss"],
 "variables": [{"name": "w", "dtype": "f32", "dims": [3, 2], "trainable": true, "initializer": "normal(0, 0.1)"}],
 "values": [{"name": "x", "kind": "input", "dtype": "f32", "dims": ["N", 2]}, {"name": "w", "kind": "variable", "variable": "w", "version": 0}],
 "nodes": [{"name": "product", "type": "Concat", "inputs": ["x", "w"], "outputs": ["joined"], "attributes": {"axis": {"int": 1}}},
  {"name": "loss", "type": "ReduceSumSquare", "inputs": ["joined"], "outputs": ["loss"], "attributes": {"keepdims": {"int": 0}}}]})json");
  const auto train = [&](const char* batch) {
    return heddle({"train", net, "--steps", "2", "--batch", batch, "--data", "x=" + samples.file("x.npy")});
  };
  const Outcome three = train("3");
  EXPECT_EQ(three.status, 0) << three.err;
  EXPECT_NE(three.out.find("does not fit every batch: it learns with 3 samples"), std::string::npos) << three.out;
  EXPECT_NE(train("4").err.find("shape-mismatch"), std::string::npos);
}

TEST(ToolTrain, ALogIsNotEmptiedByATrainingThatDoesNotBegin) {
  const Samples samples;
  const std::string log = samples.file("log.jsonl"), pipe = samples.file("pipe");
  write_text(log, "kept");
  EXPECT_EQ(heddle(samples.train({"--memory-limit", "1B", "--log", log})).status, 4);
  EXPECT_EQ(read_text(log), "kept");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(codes(heddle_json(samples.train({"--log", pipe}), 3)), Words{"file-unwritable"});
}

TEST(ToolTrain, VariablesThatAreNoNumbersAreNotSaved) {
  const Samples samples;
  const std::string trained = samples.file("trained.heddle");
  EXPECT_EQ(codes(heddle_json(samples.train({"--steps", "2", "--optimizer", "sgd", "--learning-rate", "1e20", "--set", "weight_decay=1e30",
                                             "-o", trained}),
                              1)),
            Words{"numerics"});
  EXPECT_FALSE(std::filesystem::exists(trained));
}

TEST(ToolTrain, ALossThatIsNoNumberEndsIt) {
  const Samples samples;
  const std::string trained = samples.file("trained.heddle");
  const std::vector<float> x(16, std::numeric_limits<float>::quiet_NaN());
  samples.write("x.npy", "<f4", "8, 2", x.data(), 16 * sizeof(float));
  const Json object = heddle_json(samples.train({"-o", trained}), 1);
  EXPECT_EQ(codes(object), Words{"numerics"});
  EXPECT_FALSE(std::filesystem::exists(trained));
}

// Nothing is saved of a training that has diverged, but how it went is drawn.
TEST(ToolTrain, ACurveShowsHowItDiverged) {
  const Samples samples;
  const std::string curve = samples.file("curve.svg");
  const Words words = samples.train({"--steps", "9", "--optimizer", "sgd", "--learning-rate", "1e20", "--set", "weight_decay=1e30", "-o",
                                     samples.file("trained.heddle"), "--curve", curve});
  EXPECT_EQ(codes(heddle_json(words, 1)), Words{"numerics"});
  EXPECT_NE(read_text(curve).find(">training loss, last "), std::string::npos);
  EXPECT_EQ(read_text(curve).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace heddle::tool_tests
