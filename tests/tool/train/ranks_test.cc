// heddle train by several processes: they learn what one learns, only rank 0 says and writes anything, and they go on after one has died.

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <set>

#include "rank_tools.h"
#include "weights/safetensors.h"

namespace heddle::tool_tests {
namespace {

// Compares the variables of two files, by their numbers.
void expect_near(const LenetJob& job, const std::string& found, const std::string& expected, float tolerance) {
  const auto a = Safetensors::open(job.folder.path(), found + ".safetensors", Limits());
  const auto b = Safetensors::open(job.folder.path(), expected + ".safetensors", Limits());
  ASSERT_TRUE(a.ok() && b.ok());
  ASSERT_EQ(a->tensors().size(), b->tensors().size());
  for (const TensorEntry& entry : b->tensors()) {
    const TensorEntry* const other = a->find(entry.name);
    ASSERT_TRUE(other) << entry.name;
    if (entry.dtype != DType::f32) continue;
    const auto x = a->blob(*other), y = b->blob(entry);
    ASSERT_TRUE(x.ok() && y.ok());
    const auto* const p = reinterpret_cast<const float*>((*x)->data);
    const auto* const q = reinterpret_cast<const float*>((*y)->data);
    for (int64_t i = 0; i < entry.shape.element_count(); ++i) ASSERT_NEAR(p[i], q[i], tolerance) << entry.name << ' ' << i;
  }
}

TEST(ToolRanks, LearnWhatOneProcessLearns) {
  for (const int ranks : {2, 3}) {
    const LenetJob job(ranks, 20);
    const Words tests = {"--test-data", "synthetic", "--eval-every", "10", "--optimizer", "sgd"};
    Words alone = job.words(job.files_of("one"));
    alone.insert(alone.end(), tests.begin(), tests.end());
    ASSERT_EQ(heddle(alone).status, 0);
    const std::vector<Outcome> outcomes = job.train("all", tests);
    expect_all_well(outcomes);
    EXPECT_TRUE(has(outcomes[0].out, std::to_string(ranks) + " ranks train together, by file:")) << outcomes[0].out;
    EXPECT_TRUE(has(outcomes[0].out, "step 20: loss ")) << outcomes[0].out;
    for (size_t r = 1; r < outcomes.size(); ++r) EXPECT_EQ(outcomes[r].out + outcomes[r].err, "");
    const std::vector<double> found = job.losses("all"), expected = job.losses("one");
    ASSERT_EQ(found.size(), 20u);
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
    expect_near(job, "all", "one", 1e-6F);
  }
}

// Returns the losses of a training by these tools, the first of which writes the log.
std::vector<double> losses_of(std::vector<Tool> tools, const std::string& log) {
  std::filesystem::remove(log);
  const std::vector<Outcome> outcomes = run_together(std::move(tools));
  expect_all_well(outcomes);
  std::vector<double> losses;
  for (const Json& line : lines_of(log)) losses.push_back(line["loss"]);
  return losses;
}
void expect_equal(const std::vector<double>& found, const std::vector<double>& expected, size_t steps, const std::string& what) {
  ASSERT_EQ(found.size(), steps) << what;
  ASSERT_EQ(expected.size(), steps) << what;
  for (size_t i = 0; i < steps; ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << what << ' ' << i;
}

// A training of a recipe's net, whose normalisations are those of the parts of a batch: as many parts learn the same.
struct RecipeJob {
  explicit RecipeJob(const std::string& recipe) { EXPECT_EQ(heddle({"model", recipe, "--loss", "--seed", "2", "-o", net}).status, 0); }
  Tool tool(const Words& more, const char* optimizer = "sgd") const {
    Words words = {"train", net,         "--steps", "3",           "--data",  "synthetic", "--samples",  "32",         "--seed",
                   "3",     "--threads", "1",       "--optimizer", optimizer, "--log",     log.string(), "--no-output"};
    if (std::find(more.begin(), more.end(), "--batch") == more.end()) words.insert(words.end(), {"--batch", "16"});
    words.insert(words.end(), more.begin(), more.end());
    Tool tool(words);
    tool.set("HEDDLE_SIM_DEVICES", "4");
    return tool;
  }
  std::vector<double> alone(const Words& more = {}) const { return losses_of({tool(more)}, log); }
  std::vector<double> together(int ranks, const Words& more = {}) const {
    std::vector<Tool> tools;
    for (int r = 0; r < ranks; ++r) {
      Words words = {"--rendezvous", "file:" + meeting.string(), "--rank", std::to_string(r), "--ranks", std::to_string(ranks)};
      words.insert(words.end(), more.begin(), more.end());
      tools.push_back(tool(words));
    }
    return losses_of(std::move(tools), log);
  }
  const TemporaryFolder folder;
  const std::string net = (folder / "net.heddle").string();
  const std::filesystem::path log = folder / "log.jsonl", meeting = folder / "meeting";
};

TEST(ToolRanks, LearnRecipesAsOneProcessDoes) {
  for (const char* const recipe : {"lstm_tagger", "dlrm"}) {
    const RecipeJob job(recipe);
    expect_equal(job.together(2), job.alone(), 3, recipe);
    if (recipe != std::string("dlrm")) continue;
    std::vector<Tool> tools;
    for (const char* const rank : {"0", "1"})
      tools.push_back(job.tool({"--batch", "15", "--rendezvous", "file:" + job.meeting.string(), "--rank", rank, "--ranks", "2"}));
    for (const Outcome& odd : run_together(std::move(tools))) {
      EXPECT_EQ(odd.status, 2);
      EXPECT_TRUE(has(odd.err, "gathers rows of 2 equal parts of a batch, and there is one of 15 samples")) << odd.err;
    }
  }
  const RecipeJob resnet("resnet18");
  expect_equal(resnet.together(2), resnet.alone({"--devices", "sim:0,sim:1"}), 3, "resnet18");
}

TEST(ToolRanks, MayHaveSeveralDevicesEach) {
  const RecipeJob job("lenet");
  const std::vector<double> found = job.together(2, {"--devices", "sim:0,sim:1"});
  expect_equal(found, job.alone({"--devices", "sim:0,sim:1,sim:2,sim:3"}), 3, "four devices");
  expect_equal(found, job.alone(), 3, "one process");
}

// All files are the log, the picture and the net of rank 0, whatever the others are called with.
TEST(ToolRanks, OnlyTheFirstWritesFiles) {
  const LenetJob job(2, 10);
  const std::vector<Outcome> outcomes = run_together({Tool(job.rank(0, "first", {"--curve", job.file("first.svg"), "--verbose"})),
                                                      Tool(job.rank(1, "second", {"--curve", job.file("second.svg"), "--verbose"}))});
  expect_all_well(outcomes);
  EXPECT_TRUE(has(outcomes[0].out, "rank 0 of 2 begins after step 0\n")) << outcomes[0].out;
  EXPECT_EQ(outcomes[1].out, "rank 1 of 2 begins after step 0\nrank 1 of 2 ends after step 10\n");
  EXPECT_EQ(outcomes[1].err, "");
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(job.folder.path())) names.insert(entry.path().filename().string());
  EXPECT_EQ(names, (std::set<std::string>{"first", "first.heddle", "first.jsonl", "first.safetensors", "first.svg", "lenet.heddle",
                                          "lenet.safetensors", "meeting"}));
  EXPECT_EQ(files_in(job.file("first")), 2u) << "checkpoints";
}

TEST(ToolRanks, SayWhichTheyAreInJson) {
  const LenetJob job(2, 5);
  std::vector<Outcome> outcomes = job.train("all", {"--json"});
  expect_all_well(outcomes);
  std::vector<Json> objects;
  for (int64_t r = 0; r < 2; ++r) {
    objects.push_back(checked_object(outcomes[static_cast<size_t>(r)], "train.json"));
    EXPECT_EQ(objects.back()["train"]["rank"], r);
    EXPECT_EQ(objects.back()["train"]["ranks"], 2);
  }
  EXPECT_EQ(objects[0]["train"]["last_loss"], objects[1]["train"]["last_loss"]) << "that of the whole batch";
}

// The step in which it happened is lost at the max, and in the end they have learned what an undisturbed training learns.
TEST(ToolRanks, GoOnAfterOneWasKilled) {
  for (const int ranks : {2, 3}) {
    const LenetJob job(ranks);
    expect_all_well(job.train("whole"));
    for (const int victim : {0, ranks - 1}) {
      const std::string run = "killed" + std::to_string(victim), lost = "rank " + std::to_string(victim);
      const std::vector<Outcome> outcomes = job.train_and_signal(run, victim, SIGKILL);
      for (int r = 0; r < ranks; ++r) {
        const Outcome& outcome = outcomes[static_cast<size_t>(r)];
        if (r == victim) {
          EXPECT_EQ(outcome.status, 1000 + SIGKILL);
          continue;
        }
        EXPECT_EQ(outcome.status, 1) << outcome.err;
        EXPECT_TRUE(has(outcome.err, "error[device-failed]") && has(outcome.err, lost)) << outcome.err;
      }
      const size_t steps = lines_in(job.file(run + ".jsonl"));
      EXPECT_GE(steps, 20u);
      if (victim != 0) {  // rank 0 has written a checkpoint of its last step
        EXPECT_TRUE(std::filesystem::exists(job.file(run) + "/step-0000000" + std::to_string(steps) + ".safetensors")) << steps;
      }
      const std::vector<Outcome> again = job.train(run);
      expect_all_well(again);
      EXPECT_TRUE(has(again[0].out, "continues after step")) << again[0].out;
      EXPECT_EQ(job.learned(run), job.learned("whole"));
      EXPECT_EQ(job.losses(run), job.losses("whole"));
    }
  }
}

TEST(ToolRanks, StopTogetherWhenOneIsTold) {
  for (const int told : {0, 1})
    for (const int signal : {SIGTERM, SIGINT}) {
      const LenetJob job(2, 1'000'000);
      const std::vector<Outcome> outcomes = job.train_and_signal("a", told, signal);
      const Outcome &stopped = outcomes[static_cast<size_t>(told)], &other = outcomes[static_cast<size_t>(1 - told)];
      EXPECT_EQ(stopped.status, 128 + signal) << stopped.err;
      EXPECT_EQ(std::count(stopped.err.begin(), stopped.err.end(), '\n'), 1) << stopped.err;
      EXPECT_EQ(other.status, 1) << other.err;
      EXPECT_TRUE(has(other.err, "rank " + std::to_string(told))) << other.err;
      const size_t steps = lines_in(job.file("a.jsonl"));
      std::string name = std::to_string(steps);
      name.insert(0, 9 - name.size(), '0');
      EXPECT_TRUE(std::filesystem::exists(job.file("a") + "/step-" + name + ".safetensors")) << steps;
    }
}

TEST(ToolRanks, FindTheSeedOfTheCheckpointThatTheFirstSees) {
  const LenetJob job(2, 12);
  const auto without_seed = [&](int rank, const std::string& run, const char* steps) {
    Words words = job.rank(rank, run, {});
    for (const char* const option : {"--seed", "--batch"})
      words.erase(std::find(words.begin(), words.end(), option), std::find(words.begin(), words.end(), option) + 2);
    *(std::find(words.begin(), words.end(), "--steps") + 1) = steps;
    return Tool(words);
  };
  expect_all_well(job.train("whole"));
  Words begin = job.rank(0, "a"), other = job.rank(1, "b");
  for (Words* const words : {&begin, &other}) *(std::find(words->begin(), words->end(), "--steps") + 1) = "6";
  expect_all_well(run_together({Tool(begin), Tool(other)}));
  expect_all_well(run_together({without_seed(0, "a", "12"), without_seed(1, "b", "12")}));
  EXPECT_EQ(job.learned("a"), job.learned("whole"));
}

TEST(ToolRanks, ThatAreUnlikeAreRefused) {
  const LenetJob job(2, 10);
  const std::vector<Outcome> outcomes = run_together({Tool(job.rank(0, "a")), Tool(job.rank(1, "a", {"--optimizer", "sgd"}))});
  for (const Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.status, 2) << outcome.err;
    EXPECT_TRUE(has(outcome.err, "rank 1 has another net than rank 0: \"")) << outcome.err;
  }
}

// The others would wait for it until their time-out.
TEST(ToolRanks, AreToldWhatOneOfThemCanNotBeginWith) {
  for (const int fails : {0, 1}) {
    const LenetJob job(3, 10);
    const Words tests = {"--test-data", "synthetic"};
    std::vector<Tool> tools;
    for (int r = 0; r < 3; ++r) tools.emplace_back(job.rank(r, "a", r == fails ? Words{tests[0], tests[1], "--metric", "luck"} : tests));
    const std::vector<Outcome> outcomes = run_together(std::move(tools));
    for (int r = 0; r < 3; ++r) {
      const Outcome& outcome = outcomes[static_cast<size_t>(r)];
      EXPECT_TRUE(has(outcome.err, "there is no metric \"luck\"")) << r << ": " << outcome.err;
      EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
      EXPECT_EQ(outcome.status, r == fails ? 2 : 1) << outcome.err;
      if (r == fails) continue;
      EXPECT_TRUE(has(outcome.err, "rank " + std::to_string(fails) + " has left communicator")) << outcome.err;
    }
    EXPECT_FALSE(std::filesystem::exists(job.file("a.jsonl"))) << "a log of an earlier training would be lost";
  }
}

TEST(ToolRanks, NonsenseIsRefused) {
  const Samples samples;
  const std::string folder = "file:" + samples.file("meeting");
  const std::vector<std::pair<Words, std::string>> all = {
      {{"--rank", "0"}, "--rank 0: nothing says how the processes find each other"},
      {{"--rank", "1"}, "--rank 1: nothing says"},
      {{"--ranks", "2"}, "--ranks 2: nothing says"},
      {{"--ranks", "2", "--rank", "0"}, "--ranks 2: nothing says"},
      {{"--ranks", "1", "--rank", "1"}, "--rank 1: there is one rank"},
      {{"--ranks", "0"}, "--ranks"},
      {{"--rank", "-1"}, "--rank"},
      {{"--rank", "x"}, "--rank"},
      {{"--interface", "lo"}, "--interface: this process is alone"},
      {{"--timeout", "5"}, "--timeout: this process is alone"},
      {{"--rendezvous", folder}, "--rendezvous: --rank and --ranks are not given, and no launcher says them"},
      {{"--rendezvous", folder, "--rank", "0"}, "--rendezvous: --ranks is not given"},
      {{"--rendezvous", folder, "--ranks", "2"}, "--rendezvous: --rank is not given"},
      {{"--rendezvous", folder, "--ranks", "2", "--rank", "2"}, "--rank 2: there are 2 ranks, and they are numbered from 0 on"},
      {{"--rendezvous", folder, "--ranks", "2", "--rank", "0", "--timeout", "0"}, "--timeout"},
      {{"--rendezvous", folder, "--ranks", "2", "--rank", "0", "--timeout", "-3"}, "--timeout"},
      {{"--rendezvous", folder, "--ranks", "2", "--rank", "0", "--timeout", "nan"}, "--timeout"},
      {{"--rendezvous", folder, "--ranks", "2000000000", "--rank", "0"}, "samples, and there are 2000000000 ranks"},
      {{"--rendezvous", "local:job", "--ranks", "2", "--rank", "0"}, "--rendezvous: 'local:job' is no rendezvous: write file:DIR"},
      {{"--rendezvous", "file:", "--ranks", "2", "--rank", "0"}, "--rendezvous: 'file:' is no rendezvous"},
      {{"--rendezvous", "", "--ranks", "2", "--rank", "0"}, "--rendezvous"},
      {{"--rendezvous", "redis:localhost", "--ranks", "2", "--rank", "0", "--timeout", "1"}, "redis:localhost"},
      {{"--rendezvous", "pmix"}, "--rendezvous pmix: no launcher that speaks PMIx has started this process"},
      {{"--rendezvous", "pmix", "--rank", "0", "--ranks", "2"}, "--rendezvous pmix: no launcher"}};
  for (const auto& [words, said] : all) {
    const Outcome outcome = Tool(samples.train(words)).run();
    EXPECT_EQ(outcome.status, 2) << said << outcome.err;
    EXPECT_TRUE(has(outcome.err, said)) << outcome.err;
  }
  EXPECT_FALSE(std::filesystem::exists(samples.file("meeting")));
}

TEST(ToolRanks, AreNamedWhenTheyDoNotCome) {
  const Samples samples;
  const Words more = {"--rendezvous", "file:" + samples.file("meeting"), "--ranks", "3", "--timeout", "1", "--no-output"};
  std::vector<Tool> tools;
  for (const char* const rank : {"0", "2"}) {
    Words words = more;
    words.insert(words.end(), {"--rank", rank});
    tools.emplace_back(samples.train(words));
  }
  for (const Outcome& outcome : run_together(std::move(tools))) {
    EXPECT_EQ(outcome.status, 1);
    EXPECT_TRUE(has(outcome.err, "error[device-failed]") && has(outcome.err, "missing: rank 1")) << outcome.err;
  }
}

// C15: one rank needs no rendezvous, and uses none that it has.
TEST(ToolRanks, OneTrainsAlone) {
  const Samples samples;
  ASSERT_EQ(heddle(samples.train({"-o", samples.file("alone.json")})).status, 0);
  for (const Words& words : {Words{"--ranks", "1"}, Words{"--ranks", "1", "--rank", "0"},
                             Words{"--ranks", "1", "--rendezvous", "file:" + samples.file("meeting"), "--interface", "none"},
                             Words{"--ranks", "1", "--rendezvous", "pmix"}}) {
    Words more = words;
    more.insert(more.end(), {"-o", samples.file("one.json")});
    const Outcome outcome = heddle(samples.train(more));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(read_text(samples.file("one.safetensors")), read_text(samples.file("alone.safetensors")));
    EXPECT_FALSE(std::filesystem::exists(samples.file("meeting")));
  }
}

TEST(ToolRanks, NetsAreMadeForTheirNumber) {
  const LenetJob job(2, 10);
  const std::string two = job.file("two.heddle"), one = job.file("one.heddle");
  ASSERT_EQ(heddle({"model", "lenet", "--train", "--ranks", "2", "--seed", "2", "--learning-rate", "0.001", "-o", two}).status, 0);
  ASSERT_EQ(heddle({"model", "lenet", "--train", "-o", one}).status, 0);
  EXPECT_EQ(heddle({"model", "lenet", "--loss", "--ranks", "2", "-o", job.file("none.heddle")}).status, 2);
  const auto tool = [&](const std::string& net, int rank, int ranks) {
    return Tool({"train",        net,
                 "--steps",      "10",
                 "--batch",      "24",
                 "--data",       "synthetic",
                 "--samples",    "120",
                 "--threads",    "1",
                 "--seed",       "3",
                 "--rendezvous", "file:" + job.file("meeting"),
                 "--rank",       std::to_string(rank),
                 "--ranks",      std::to_string(ranks),
                 "-o",           job.file("made.heddle")});
  };
  expect_all_well(run_together({tool(two, 0, 2), tool(two, 1, 2)}));
  expect_all_well(job.train("all"));
  EXPECT_EQ(job.learned("made"), job.learned("all")) << "a net that was made to learn before learns the same";
  const Outcome of_one = tool(one, 0, 2).run(), of_three = tool(two, 0, 3).run();
  EXPECT_EQ(of_one.status, 2);
  EXPECT_TRUE(
      has(of_one.err, "net \"train\" was made to learn in one process, and there are 2 ranks; make it with heddle model --train --ranks 2"))
      << of_one.err;
  EXPECT_EQ(of_three.status, 2);
  EXPECT_TRUE(has(of_three.err, "net \"train\" was made to learn in 2 processes, and there are 3")) << of_three.err;
  const Outcome alone = heddle({"train", two, "--steps", "1", "--data", "synthetic", "--no-output"});
  EXPECT_EQ(alone.status, 2);
  EXPECT_TRUE(has(alone.err, "there is one; start 2 of them with --rendezvous, --rank and --ranks")) << alone.err;
}

}  // namespace
}  // namespace heddle::tool_tests
