// heddle train --log, --curve and --metric: what they have of steps and tests, and what a training that continues makes of the files that
// are there.
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <thread>

#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

const std::string step_columns = "step,epoch,loss,step_ns,read_ns,learning_rate,gradient_norm";

Words cells_of(const std::string& line) {
  Words cells = {""};
  for (const char c : line)
    if (c == ',')
      cells.emplace_back();
    else
      cells.back() += c;
  return cells;
}

// The cells of a table without its durations, line by line, the header first.
std::vector<Words> table(const std::string& file) {
  std::vector<Words> rows;
  std::istringstream lines(read_text(file));
  for (std::string line; std::getline(lines, line);) {
    rows.push_back(cells_of(line));
    if (rows.size() > 1) rows.back()[3] = rows.back()[4] = "";
  }
  return rows;
}

struct Logs : Samples {
  Logs() {
    std::string text = read_text(net);  // the test net tells its logits too
    const std::string tested = R"("test", "inputs": ["x", "labels"], "outputs": ["loss")";
    const size_t at = text.find(tested);
    EXPECT_NE(at, std::string::npos);
    write_text(net, text.insert(at + tested.size(), R"(, "logits")"));
  }
  Words tested(const Words& more) const {
    Words words = train({"--test-data", "x=" + file("x.npy"), "--test-data", "labels=" + file("labels.npy"), "--no-output"});
    for (const auto& [option, value] : {std::pair("--eval-every", "10")})
      if (std::find(more.begin(), more.end(), option) == more.end()) words.insert(words.end(), {option, value});
    if (const auto steps = std::find(more.begin(), more.end(), "--steps"); steps != more.end())
      words.erase(std::find(words.begin(), words.end(), "--steps"), std::find(words.begin(), words.end(), "--steps") + 2);
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words saved_in(const char* folder, const Words& more) const {
    Words words = tested(more);
    words.insert(words.end(), {"--checkpoint-dir", file(folder), "--resume"});
    return words;
  }
};

// A line for each step, in which the means of its test are.
TEST(ToolTrainLogs, ATableHasALineForEachStep) {
  const Logs here;
  const std::string csv = here.file("log.csv"), json = here.file("log.jsonl");
  const Json object = heddle_json(here.tested({"--log", csv, "--gradient-norm", "--metric", "accuracy:logits,labels"}));
  heddle_json(here.tested({"--log", json, "--gradient-norm", "--metric", "accuracy:logits,labels"}));
  const std::vector<Words> rows = table(csv);
  ASSERT_EQ(rows.size(), 21u);
  EXPECT_EQ(read_text(csv).substr(0, read_text(csv).find('\n')), step_columns + ",test_loss,test_accuracy");
  size_t step = 0;
  for (const Json& line : lines_of(json)) {
    const Words& row = rows[line["step"].get<size_t>()];
    ASSERT_EQ(row.size(), 9u);
    EXPECT_EQ(row[0], line["step"].dump());
    EXPECT_EQ(row[1], line["epoch"].dump());
    if (line.contains("test_loss")) {
      EXPECT_EQ(std::stod(row[7]), line["test_loss"].get<double>());
      EXPECT_EQ(std::stod(row[8]), line["test_accuracy"].get<double>());
      continue;
    }
    ++step;
    EXPECT_EQ(line["step"], step);
    EXPECT_EQ(line["epoch"], (step - 1) / 2 + 1) << "eight samples in batches of four";
    EXPECT_EQ(std::stod(row[2]), line["loss"].get<double>());
    EXPECT_EQ(std::stod(row[5]), line["learning_rate"].get<double>());
    EXPECT_EQ(std::stod(row[6]), line["gradient_norm"].get<double>());
    if (step % 10 != 0) {
      EXPECT_EQ(row[7] + row[8], "");
    }
  }
  EXPECT_EQ(step, 20u);
  EXPECT_EQ(object["train"]["test"]["loss"].get<double>(), std::stod(rows[20][7]));
  EXPECT_EQ(read_text(csv).back(), '\n');
}

// Columns that have nothing stay, and without tests there are none for them. A log of an earlier training is replaced.
TEST(ToolTrainLogs, ColumnsAreTheSameWhateverTheNetHas) {
  const Logs here;
  const std::string csv = here.file("log.csv");
  write_text(csv, "another,table\n1,2\n");
  heddle_json(here.train({"--log", csv, "--steps", "3", "--no-output"}));
  const std::vector<Words> rows = table(csv);
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0], cells_of(step_columns));
  EXPECT_EQ(rows[3], (Words{"3", "2", rows[3][2], "", "", "0.5", ""}));
  // A test net that tells no number has no column either.
  const std::string net = read_text(here.net), outputs = R"("outputs": ["loss", "logits"])";
  write_text(here.net, std::string(net).replace(net.find(outputs), outputs.size(), R"("outputs": ["logits"])"));
  heddle_json(here.tested({"--log", csv, "--steps", "3"}));
  EXPECT_EQ(table(csv), rows);
}

// Killed several times: each step is there once, as in a training that was never killed.
TEST(ToolTrainLogs, ATableContinuesAfterAKill) {
  const Logs here;
  const std::string whole = here.file("whole.csv"), resumed = here.file("resumed.csv");
  ASSERT_EQ(heddle(here.saved_in("whole", {"--steps", "6000", "--log", whole})).status, 0);
  int kills = 0;
  for (;;) {
    Tool tool(here.saved_in("resumed", {"--steps", "6000", "--checkpoint-every", "50", "--log", resumed}));
    const auto size = [&] { return std::filesystem::exists(resumed) ? std::filesystem::file_size(resumed) : 0; };
    const auto before = size();
    if (kills < 3) tool.interrupt(SIGKILL, [&](const std::string&, pid_t) { return size() > before + 30000; });
    const Outcome outcome = tool.run();
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 1000 + SIGKILL) << outcome.err;
    ++kills;
  }
  EXPECT_EQ(kills, 3);
  EXPECT_EQ(table(resumed), table(whole));
  EXPECT_EQ(table(resumed).size(), 6001u);
}

// A test that was not made before an interruption is made when the training continues: its means come into the line of its step.
TEST(ToolTrainLogs, ATestThatIsMadeLaterIsInTheLineOfItsStep) {
  const Logs here;
  const std::string csv = here.file("log.csv");
  Tool tool(here.saved_in("a", {"--steps", "1000000000", "--eval-every", "1000000000", "--log", csv}));
  tool.interrupt(SIGINT, [&](const std::string&, pid_t) { return std::filesystem::exists(csv) && std::filesystem::file_size(csv) > 9000; });
  EXPECT_EQ(tool.run().status, 128 + SIGINT);
  const std::vector<Words> before = table(csv);
  EXPECT_EQ(before.back()[7], "");
  // In a new table that step has a line without a loss.
  const std::string last = before.back()[0], fresh = here.file("fresh.csv");
  std::filesystem::copy(here.file("a"), here.file("b"));
  const Json tested = heddle_json(here.saved_in("b", {"--steps", last, "--log", fresh}))["train"];
  const std::vector<Words> alone = table(fresh);
  ASSERT_EQ(alone.size(), 2u);
  EXPECT_EQ(alone[1], (Words{last, before.back()[1], "", "", "", "", "", alone[1][7]}));
  EXPECT_EQ(std::stod(alone[1][7]), tested["test"]["loss"].get<double>());
  const Json object = heddle_json(here.saved_in("a", {"--steps", before.back()[0], "--log", csv}));
  EXPECT_EQ(object["train"]["steps"], 0);
  std::vector<Words> after = table(csv);
  EXPECT_EQ(std::stod(after.back()[7]), object["train"]["test"]["loss"].get<double>());
  after.back()[7] = "";
  EXPECT_EQ(after, before);
}

// Lines that a crash has left: one that is not whole is made again, and the last one may lack its means and its end.
TEST(ToolTrainLogs, ALineThatIsNotWholeIsMadeAgain) {
  const Logs here;
  const std::string csv = here.file("log.csv");
  const auto train = [&](const char* steps) { return heddle_json(here.saved_in("a", {"--steps", steps, "--log", csv})); };
  train("20");
  const std::string twenty = read_text(csv);
  const size_t row = twenty.rfind("\n20,") + 1, means = twenty.rfind(',') + 1;
  const auto continued = [&](const std::string& kept) {
    const std::filesystem::path folder = here.file("a"), copy = here.file("copy");
    std::filesystem::remove_all(copy);
    std::filesystem::copy(folder, copy);
    write_text(here.file("copy.csv"), kept);
    heddle_json(here.saved_in("copy", {"--steps", "30", "--log", here.file("copy.csv")}));
    return table(here.file("copy.csv"));
  };
  EXPECT_EQ(continued(twenty).size(), 31u);
  const std::vector<Words> open = continued(twenty.substr(0, means));  // its means are in the checkpoint: it is not tested again
  ASSERT_EQ(open.size(), 31u);
  EXPECT_EQ(open[20].size(), 8u);
  EXPECT_EQ(open[20][7], "");
  const std::vector<Words> torn = continued(twenty.substr(0, row + 5));
  ASSERT_EQ(torn.size(), 30u) << "the line of step 20 is lost: that step is not made again";
  EXPECT_EQ(torn[20][0], "21");
  EXPECT_EQ(continued("").size(), 11u);
  EXPECT_EQ(continued(twenty.substr(0, 9)).size(), 11u) << "a part of the header";
  EXPECT_EQ(continued(twenty)[0], cells_of(step_columns + ",test_loss"));
}

TEST(ToolTrainLogs, ATableOfOtherColumnsIsRefused) {
  const Logs here;
  const std::string csv = here.file("log.csv");
  heddle_json(here.saved_in("a", {"--steps", "10", "--log", csv}));
  const std::string before = read_text(csv);
  const Outcome outcome = heddle(here.saved_in("a", {"--steps", "20", "--log", csv, "--metric", "top1:logits,labels"}));
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("test_loss\", and those of this training are"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("test_loss,test_top1\""), std::string::npos) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_EQ(read_text(csv), before);
  EXPECT_EQ(heddle(here.saved_in("a", {"--steps", "20", "--log", csv})).status, 0);
}

// A file that is called like a checkpoint in their folder would be taken for one.
TEST(ToolTrainLogs, NoOutputIsCalledLikeACheckpoint) {
  const Logs here;
  std::filesystem::create_directory(here.file("a"));
  std::filesystem::create_directory_symlink(here.file("a"), here.folder / "link");
  const std::string name = "/step-000000010.safetensors";
  for (const Words& more : {Words{"--log", here.file("a") + name}, Words{"--log", here.file("link") + name},
                            Words{"--log", here.file("b") + "/../a" + name}, Words{"--curve", here.file("a") + name}}) {
    std::filesystem::create_directory(here.file("b"));
    const Outcome outcome = heddle(here.saved_in("a", more));
    EXPECT_EQ(outcome.status, 2) << more[1] << outcome.err;
    EXPECT_NE(outcome.err.find(more[0] + " \"" + more[1] + "\" is called like a checkpoint"), std::string::npos) << outcome.err;
    EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  }
  Words words = here.train({"--checkpoint-dir", here.file("a"), "-o", here.file("a") + "/step-000000010.heddle"});
  EXPECT_EQ(codes(heddle_json(words, 2)), Words{"invalid-argument"}) << "its weights would be beside it";
  EXPECT_EQ(heddle(here.saved_in("a", {"--log", here.file("a") + "/log.csv"})).status, 0) << "other files may be there";
  EXPECT_EQ(heddle(here.tested({"--log", here.file("b") + name})).status, 0) << "there are no checkpoints";
}

// The picture of a training that continues is that of one that was never interrupted, if the log has what was before.
TEST(ToolTrainCurve, OfATrainingThatContinuesIsWhole) {
  const Logs here;
  const std::string curve = here.file("curve.svg");
  heddle_json(here.tested({"--steps", "40", "--curve", curve}));
  const std::string whole = read_text(curve);
  for (const char* const log : {"log.jsonl", "log.csv"}) {
    SCOPED_TRACE(log);
    const std::string folder = std::string("of_") + log;
    for (const char* const steps : {"10", "30", "40", "40"}) {  // the last one makes no step
      std::filesystem::remove(curve);
      heddle_json(here.saved_in(folder.c_str(), {"--steps", steps, "--curve", curve, "--log", here.file(log)}));
      EXPECT_EQ(read_text(curve) == whole, steps == std::string("40")) << steps;
    }
  }
}

TEST(ToolTrainCurve, IsNotReplacedByOneOfNothing) {
  const Logs here;
  const std::string curve = here.file("curve.svg");
  const auto train = [&] { return heddle(here.saved_in("a", {"--steps", "10", "--curve", curve})); };
  ASSERT_EQ(train().status, 0);
  const std::string before = read_text(curve);
  const Outcome again = train();
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_EQ(read_text(curve), before);
  EXPECT_NE(again.out.find("stays as it is"), std::string::npos) << again.out;
  std::filesystem::remove(curve);
  EXPECT_EQ(train().status, 0);
  EXPECT_NE(read_text(curve).find("loss: nothing to draw"), std::string::npos);
}

TEST(ToolTrainCurve, GoesToATerminalInCharacters) {
  const Logs here;
  const Outcome outcome = heddle(here.tested({"--steps", "40", "--curve", "-"}));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  for (const char* const part : {"* training loss", "o test loss", " |", " +-----", "step\n"})
    EXPECT_NE(outcome.out.find(part), std::string::npos) << part << "\n" << outcome.out;
  EXPECT_FALSE(std::filesystem::exists("-"));
  EXPECT_NE(heddle(here.tested({"--steps", "4", "--curve", "-", "--quiet"})).out.find("* training loss"), std::string::npos);
  EXPECT_EQ(codes(heddle_json(here.tested({"--steps", "4", "--curve", "-"}), 2)), Words{"invalid-argument"}) << "the object goes there";
}

TEST(ToolTrainCurve, GoesToAPipe) {
  const Logs here;
  const std::string pipe = here.file("pipe");
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  std::string read;
  std::thread reader([&] { read = read_text(pipe); });
  EXPECT_EQ(heddle(here.tested({"--steps", "4", "--curve", pipe})).status, 0);
  reader.join();
  EXPECT_NE(read.find("</svg>"), std::string::npos);
}

TEST(ToolTrainMetrics, AreMeansOfTests) {
  const Logs here;
  const std::string log = here.file("log.jsonl");
  const Words metrics = {"--metric", "accuracy:logits,labels", "--metric", "top2:logits,labels", "--metric", "perplexity:loss"};
  Words words = here.tested({"--log", log, "--batch", "3", "--best", "accuracy=max"});
  words.insert(words.end(), metrics.begin(), metrics.end());
  words.erase(std::find(words.begin(), words.end(), "--batch"), std::find(words.begin(), words.end(), "--batch") + 2);
  const Json test = heddle_json(words)["train"];
  EXPECT_EQ(test["test"]["accuracy"], 1.0);
  EXPECT_EQ(test["test"]["top2"], 1.0);
  EXPECT_NEAR(test["test"]["perplexity"].get<double>(), std::exp(test["test"]["loss"].get<double>()), 1e-12);
  EXPECT_EQ(test["best"]["mean"], 1.0);
  EXPECT_EQ(lines_of(log).back()["test_top2"], 1.0);
  EXPECT_NE(heddle(words).out.find(", test accuracy 1, test top2 1, test perplexity 1."), std::string::npos);
}

TEST(ToolTrainMetrics, WhatIsWrongIsSaidBeforeTheFirstStep) {
  const Logs here;
  const std::string log = here.file("log.jsonl");
  const auto says = [&](const Words& more, int status) {
    Words words = here.tested(more);
    words.insert(words.end(), {"--log", log});
    const Words found = codes(heddle_json(words, status));
    EXPECT_FALSE(std::filesystem::exists(log)) << "no step was made";
    return found;
  };
  EXPECT_EQ(says({"--metric", "f1:logits,labels"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--metric", "accuracy"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says({"--metric", "accuracy:scores,labels"}, 2), Words{"unknown-name"});
  EXPECT_EQ(says({"--metric", "accuracy:logits,x"}, 3), Words{"dtype-mismatch"});
  EXPECT_EQ(says({"--metric", "top3:logits,labels"}, 3), Words{"shape-mismatch"});
  EXPECT_EQ(says({"--metric", "top2:logits,labels", "--metric", "top2:logits,labels"}, 3), Words{"duplicate-name"});
  EXPECT_EQ(heddle(here.tested({"--metric", ""})).status, 2);
  EXPECT_EQ(codes(heddle_json(here.train({"--metric", "top2:logits,labels", "--no-output"}), 2)), Words{"invalid-argument"});
}

// The sample is named by its number in the test's arrays.
TEST(ToolTrainMetrics, ALabelThatIsNoClassNamesItsSample) {
  const Logs here;
  std::string text = read_text(here.net);  // its loss ignores the label 7
  const std::string loss = R"("inputs": ["logits", "labels"], "outputs": ["loss"])";
  text.insert(text.rfind(loss) + loss.size(), R"(, "attributes": {"ignore_index": {"int": 7}})");
  write_text(here.net, text);
  const std::vector<int64_t> labels = {0, 1, 0, 1, 0, 7, 0, 1};
  here.write("labels.npy", "<i8", "8,", labels.data(), 8 * sizeof(int64_t));
  text.insert(text.find(loss) + loss.size(), R"(, "attributes": {"ignore_index": {"int": 7}})");
  write_text(here.net, text);
  const Outcome outcome = heddle(here.tested({"--metric", "accuracy:logits,labels"}));
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_NE(outcome.err.find("label 7 of sample 5 is no class of \"logits\""), std::string::npos) << outcome.err;
  EXPECT_EQ(heddle(here.tested({})).status, 0);
}

}  // namespace
}  // namespace heddle::tool_tests
