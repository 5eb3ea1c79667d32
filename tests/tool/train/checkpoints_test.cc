// heddle train --checkpoint-dir and --resume: what is interrupted or killed continues, and learns what an undisturbed training learns.
#include <algorithm>
#include <csignal>
#include <filesystem>

#include "tool/train/learning_samples.h"

namespace heddle::tool_tests {
namespace {

// The names of the checkpoints of a folder, sorted.
Words checkpoints_in(const std::filesystem::path& folder) {
  Words names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

// The lines of a log, without durations.
std::vector<Json> lines_without_times(const std::string& file) {
  std::vector<Json> lines = lines_of(file);
  for (Json& line : lines) line.erase("step_ns"), line.erase("read_ns");
  return lines;
}

struct Checkpoints : Samples {
  // A training of that many steps that is tested each tenth one, and keeps its checkpoints in folder/NAME.
  Words train_in(const char* name, const char* steps, const Words& more = {}) const {
    Words words = train({"--steps", steps, "--eval-every", "10", "--checkpoint-dir", file(name), "--test-data", "x=" + file("x.npy"),
                         "--test-data", "labels=" + file("labels.npy"), "--set", "momentum=0.9"});
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST(ToolCheckpoints, AreWrittenWithTheTestsAndTheNewestAreKept) {
  const Checkpoints here;
  ASSERT_EQ(heddle(here.train_in("a", "45")).status, 0);
  EXPECT_EQ(checkpoints_in(here.file("a")),
            (Words{"step-000000030.safetensors", "step-000000040.safetensors", "step-000000045.safetensors"}));
  ASSERT_EQ(heddle(here.train_in("b", "10", {"--checkpoint-every", "3", "--keep", "0"})).status, 0);
  EXPECT_EQ(checkpoints_in(here.file("b")), (Words{"step-000000003.safetensors", "step-000000006.safetensors", "step-000000009.safetensors",
                                                   "step-000000010.safetensors"}));
}

// Killed several times, at whatever step that is: the file and each line of the log are those of a training that was never killed.
TEST(ToolCheckpoints, AKilledTrainingContinuesToTheSameBits) {
  const Checkpoints here;
  const char* const steps = "20000";
  const std::string whole = here.file("whole.heddle"), resumed = here.file("resumed.heddle"), log = here.file("resumed.jsonl");
  ASSERT_EQ(heddle(here.train_in("whole", steps, {"--seed", "5", "-o", whole, "--log", here.file("whole.jsonl")})).status, 0);
  int kills = 0;
  for (;;) {
    Words words = here.train_in("resumed", steps, {"--checkpoint-every", "50", "--resume", "-o", resumed, "--log", log});
    if (kills == 0) words.insert(words.end(), {"--seed", "5"});  // the others have that of the checkpoint
    Tool tool(words);
    const auto size = [&] { return std::filesystem::exists(log) ? std::filesystem::file_size(log) : 0; };
    const auto before = size();
    if (kills < 4) tool.interrupt(SIGKILL, [&](const std::string&, pid_t) { return size() > before + 100000; });
    const Outcome outcome = tool.run();
    if (outcome.status == 0) break;
    ASSERT_EQ(outcome.status, 1000 + SIGKILL) << outcome.err;
    ++kills;
  }
  EXPECT_EQ(kills, 4);
  for (const std::string& name : checkpoints_in(here.file("resumed"))) EXPECT_EQ(name.rfind("step-", 0), 0u) << name << " is left";
  EXPECT_EQ(read_text(here.file("resumed.safetensors")), read_text(here.file("whole.safetensors")));
  EXPECT_EQ(read_text(resumed), read_text(whole));
  const std::vector<Json> lines = lines_without_times(log);
  EXPECT_EQ(lines, lines_without_times(here.file("whole.jsonl")));
  EXPECT_EQ(lines.size(), 22000u);
}

TEST(ToolCheckpoints, AnInterruptedTrainingWritesOneMore) {
  for (const int signal : {SIGINT, SIGTERM})
    for (const char* const commit : {"late", "early"}) {
      const Checkpoints here;
      const std::string log = here.file("log.jsonl");
      const Words more = {"--commit", commit, "--log", log, "--resume"};
      Tool tool(here.train_in("a", "1000000000", more));
      tool.interrupt(signal,
                     [&](const std::string&, pid_t) { return std::filesystem::exists(log) && std::filesystem::file_size(log) > 9000; });
      const Outcome outcome = tool.run();
      EXPECT_EQ(outcome.status, 128 + signal) << outcome.err;
      EXPECT_EQ(outcome.err.find("nothing of what is learned"), std::string::npos) << outcome.err;
      // It is of the last step that was logged.
      const int64_t last = lines_of(log).back()["step"];
      const Words names = checkpoints_in(here.file("a"));
      ASSERT_FALSE(names.empty());
      EXPECT_EQ(names.back(), "step-" + std::string(9 - std::to_string(last).size(), '0') + std::to_string(last) + ".safetensors");
      const Json next = heddle_json(here.train_in("a", std::to_string(last + 1).c_str(), more));
      EXPECT_EQ(next["train"]["resumed_from"], last);
      EXPECT_EQ(next["train"]["steps"], 1);
    }
}

TEST(ToolCheckpoints, WhatDoesNotFitIsSaid) {
  const Checkpoints here;
  const auto says = [&](const char* name, const Words& more, int status) {
    return codes(heddle_json(here.train_in(name, "20", more), status));
  };
  const Outcome none = heddle(here.train_in("a", "20", {"--resume"}));
  EXPECT_EQ(none.status, 0);
  EXPECT_NE(none.out.find("has no checkpoint yet"), std::string::npos) << none.out;
  EXPECT_EQ(says("a", {}, 2), Words{"invalid-argument"}) << "of an earlier training";
  EXPECT_EQ(says("a", {"--resume", "--seed", "1"}, 2), Words{"invalid-argument"});
  EXPECT_EQ(says("missing/a", {}, 3), Words{"file-unwritable"});
  EXPECT_EQ(says("x.npy", {}, 3), Words{"file-unwritable"});
  EXPECT_EQ(heddle(here.train({"--resume"})).status, 2) << "from where?";
  EXPECT_EQ(heddle(here.train({"--keep", "2"})).status, 2);
  EXPECT_EQ(says("a", {"--resume"}, 0), Words{}) << "it is over";
  // A damaged file is told of, and the one before it is taken.
  const std::filesystem::path newest = here.folder / "a" / "step-000000020.safetensors";
  write_text(newest, read_text(newest).substr(0, 900));
  const Json object = heddle_json(here.train_in("a", "20", {"--resume"}));
  EXPECT_EQ(codes(object), Words{"file-truncated"});
  EXPECT_EQ(object["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(object["train"]["resumed_from"], 10);
}

// One bit of a tensor is found when it is read; the checkpoint before it is taken, and none is written over if none can be read.
TEST(ToolCheckpoints, ADamagedOneGivesWayToTheOneBefore) {
  const Checkpoints here;
  const std::string whole = here.file("whole.json"), resumed = here.file("resumed.json");
  ASSERT_EQ(heddle(here.train_in("whole", "30", {"-o", whole})).status, 0);
  ASSERT_EQ(heddle(here.train_in("a", "20")).status, 0);
  const auto damage = [&](const char* name) {
    std::string bytes = read_text(here.file(name));
    bytes[bytes.size() - 1] = static_cast<char>(bytes.back() ^ 1);
    write_text(here.file(name), bytes);
  };
  damage("a/step-000000020.safetensors");
  const Json object = heddle_json(here.train_in("a", "30", {"--resume", "-o", resumed}));
  EXPECT_EQ(codes(object), Words{"file-corrupt"});
  EXPECT_EQ(object["diagnostics"][0]["severity"], "warning");
  EXPECT_EQ(object["train"]["resumed_from"], 10);
  EXPECT_EQ(read_text(resumed), read_text(whole));
  const Words all = {"a/step-000000010.safetensors", "a/step-000000020.safetensors", "a/step-000000030.safetensors"};
  for (const std::string& name : all) damage(name.c_str());
  EXPECT_EQ(heddle(here.train_in("a", "40", {"--resume"})).status, 3);
  for (const std::string& name : all) write_text(here.file(name.c_str()), "no checkpoint");
  EXPECT_EQ(heddle(here.train_in("a", "40", {"--resume"})).status, 3);
  EXPECT_EQ(heddle(here.train_in("a", "40")).status, 2);
  for (const std::string& name : all) EXPECT_EQ(read_text(here.file(name.c_str())), "no checkpoint");
}

// A log that is full ends the training, whose steps are not lost.
TEST(ToolCheckpoints, AreWrittenWhereTheLogFails) {
  const Checkpoints here;
  ASSERT_EQ(heddle(here.train_in("a", "300", {"--checkpoint-every", "200", "--log", "/dev/full"})).status, 3);
  EXPECT_EQ(checkpoints_in(here.file("a")), Words{"step-000000001.safetensors"});
}

// Another --best does not take the numbers of the one before for its own.
TEST(ToolCheckpoints, AnotherBestBeginsAnew) {
  const Checkpoints here;
  ASSERT_EQ(heddle(here.train_in("a", "20", {"--best", "loss=min"})).status, 0);
  const Json largest = heddle_json(here.train_in("a", "40", {"--resume", "--best", "loss=max"}));
  EXPECT_EQ(largest["train"]["best"]["step"], 30);
  const Outcome none = heddle(here.train_in("a", "50", {"--resume"}));
  EXPECT_EQ(none.out.find("is the best"), std::string::npos) << none.out;
}

TEST(ToolCheckpoints, AreShownByInspect) {
  const Checkpoints here;
  ASSERT_EQ(heddle(here.train_in("a", "25", {"--seed", "7", "--checkpoint-every", "10"})).status, 0);
  const Json folder = heddle_json({"inspect", here.file("a")})["checkpoints"];
  ASSERT_EQ(folder.size(), 3u);
  EXPECT_EQ(folder[0]["step"], 25);
  EXPECT_EQ(folder[2]["step"], 10);
  EXPECT_TRUE(folder[0]["means"].contains("loss"));
  const std::string newest = here.file("a/step-000000025.safetensors");
  const Json file = heddle_json({"inspect", newest});
  EXPECT_EQ(file["checkpoints"], Json::array({folder[0]}));
  EXPECT_EQ(file["tensors"].size(), 3u) << "w, its velocity and the step";
  EXPECT_EQ(file["checkpoints"][0]["seed"], 7);
  EXPECT_NE(heddle({"inspect", newest}).out.find("checkpoint of step 25: loss "), std::string::npos);
  write_text(newest, read_text(newest).substr(0, 300));
  EXPECT_EQ(codes(heddle_json({"inspect", here.file("a")})), Words{"file-truncated"});
  EXPECT_EQ(codes(heddle_json({"inspect", here.folder.path().string()}, 3)), Words{"file-unreadable"});
}

// A predictor has what training had learned until then.
TEST(ToolCheckpoints, PredictorsAreTakenFromThem) {
  const Checkpoints here;
  const std::string trained = here.file("trained.heddle"), net = here.net;
  ASSERT_EQ(heddle(here.train_in("a", "30", {"-o", trained})).status, 0);
  const auto outputs_of = [&](const Words& more, const std::string& of) {
    const std::string predictor = here.file("predictor.json"), logits = here.file("logits.npy");
    Words words = {"predictor", of, "--net", "train", "--output", "logits", "-o", predictor};
    words.insert(words.end(), more.begin(), more.end());
    heddle_json(words);
    heddle_json({"run", predictor, "--input", "x=" + here.file("x.npy"), "--output", "logits=" + logits});
    return read_text(logits);
  };
  const std::string newest = outputs_of({}, trained);
  EXPECT_EQ(outputs_of({"--checkpoint", here.file("a")}, net), newest);
  EXPECT_EQ(outputs_of({"--checkpoint", here.file("a/step-000000030.safetensors")}, net), newest);
  EXPECT_NE(outputs_of({"--checkpoint", here.file("a/step-000000010.safetensors")}, net), newest);
  const auto says = [&](const std::string& checkpoint, const std::string& of, int status) {
    return codes(heddle_json({"predictor", of, "--output", "logits", "--checkpoint", checkpoint, "-o", here.file("p.json")}, status));
  };
  EXPECT_EQ(says(here.file("trained.safetensors"), net, 3), Words{"file-not-found"}) << "so small a net has no such file";
  EXPECT_EQ(says(here.folder.path().string(), net, 3), Words{"file-not-found"});
  ASSERT_EQ(heddle({"model", "lenet", "-o", here.file("constant.heddle")}).status, 0);
  EXPECT_EQ(says(here.file("a"), here.file("constant.heddle"), 2), Words{"invalid-argument"}) << "it has no variables";
  ASSERT_EQ(heddle({"model", "mlp", "--train", "-o", here.file("other.heddle")}).status, 0);
  const Words all = says(here.file("a"), here.file("other.heddle"), 2);
  ASSERT_FALSE(all.empty());
  EXPECT_EQ(all[0], "unknown-name");
}

// The test loss is least after the first tests where the labels of the test are others; its variables are what is written.
TEST(ToolCheckpoints, TheBestIsWhatIsKept) {
  const Checkpoints here;
  std::vector<int64_t> labels = {0, 1, 1, 1, 0, 1, 0, 0};
  here.write("other.npy", "<i8", "8,", labels.data(), 8 * sizeof(int64_t));
  const auto train = [&](const Words& more, int status = 0) {
    Words words = here.train({"--steps", "60", "--eval-every", "2", "--test-data", "x=" + here.file("x.npy"), "--test-data",
                              "labels=" + here.file("other.npy"), "--log", here.file("log.jsonl")});
    words.insert(words.end(), more.begin(), more.end());
    return heddle_json(words, status);
  };
  const std::string trained = here.file("trained.json"), loss = here.file("loss.npy");
  const Json whole = train({"--best", "loss=min", "-o", trained});
  double least = 1e9;
  int64_t step = 0;
  for (const Json& line : lines_of(here.file("log.jsonl")))
    if (line.contains("test_loss") && line["test_loss"].get<double>() < least) least = line["test_loss"], step = line["step"];
  EXPECT_LT(step, 60);
  EXPECT_EQ(whole["train"]["best"]["step"], step);
  EXPECT_EQ(whole["train"]["best"]["mean"], least);
  EXPECT_EQ(whole["train"]["stopped_early"], false);
  heddle_json({"run", trained, "--net", "test", "--input", "x=" + here.file("x.npy"), "--input", "labels=" + here.file("other.npy"),
               "--output", "loss=" + loss});
  EXPECT_NEAR(npy_values(loss)[0], least, 1e-6);
  const Json stopped =
      train({"--best", "loss=min", "--patience", "3", "-o", here.file("stopped.json"), "--checkpoint-dir", here.file("a")});
  EXPECT_EQ(stopped["train"]["stopped_early"], true);
  EXPECT_EQ(stopped["train"]["steps"], step + 6);
  EXPECT_EQ(read_text(here.file("stopped.json")), read_text(trained));
  // It is over: the same is written again.
  const Json again =
      train({"--best", "loss=min", "--patience", "3", "-o", here.file("again.json"), "--checkpoint-dir", here.file("a"), "--resume"});
  EXPECT_EQ(again["train"]["steps"], 0);
  EXPECT_TRUE(again["train"]["first_loss"].is_null());
  EXPECT_TRUE(stopped["train"]["test"].is_object());
  for (const char* const key : {"best", "stopped_early", "last_loss", "test"}) EXPECT_EQ(again["train"][key], stopped["train"][key]) << key;
  EXPECT_EQ(read_text(here.file("again.json")), read_text(trained));
  EXPECT_EQ(codes(train({"--best", "loss", "--no-output"}, 2)), Words{"invalid-argument"});
  EXPECT_EQ(codes(train({"--best", "accuracy=max", "--no-output"}, 2)), Words{"unknown-name"});
  EXPECT_EQ(codes(heddle_json(here.train({"--best", "loss=min"}), 2)), Words{"invalid-argument"}) << "nothing is tested";
  EXPECT_EQ(heddle(here.train({"--patience", "3"})).status, 2);
}

}  // namespace
}  // namespace heddle::tool_tests
