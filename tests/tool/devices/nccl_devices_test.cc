// heddle train on GPUs that NCCL connects, of the stand-in for NVIDIA's libraries: in one process, and in two.
#include "tool/train/rank_tools.h"

namespace heddle::tool_tests {
namespace {

// On the stand-in, with settings that are all equal but for what `environment` adds.
Tool on_standin(const Words& words, const std::map<std::string, std::string>& environment = {}) {
  Tool tool(words);
  tool.set("HEDDLE_CUDA_STANDIN", test_plugin("cuda_standin")).set("HEDDLE_CUDA_STANDIN_DEVICES", "4");
  for (const auto& [name, value] : environment) tool.set(name, value);
  return tool;
}

class ToolNccl : public ::testing::Test {
 protected:
  void SetUp() override {
#ifndef HEDDLE_WITH_CUDA
    GTEST_SKIP() << "the CUDA plugin was not built";
#endif
  }
};

struct Recipe {
  std::string name, batch, steps;
};
const std::vector<Recipe> recipes = {{"lenet", "8", "3"}, {"lstm_tagger", "2", "1"}, {"dlrm", "4", "1"}};

class Training {
 public:
  explicit Training(const Recipe& recipe) : recipe_(recipe) { EXPECT_EQ(heddle({"model", recipe.name, "--loss", "-o", net_}).status, 0); }
  Words words(const Words& more) const {
    Words all = {"train",     net_, "--steps", recipe_.steps, "--batch",   recipe_.batch, "--data",          "synthetic",
                 "--samples", "32", "--seed",  "3",           "--threads", "1",           "--learning-rate", "0.01"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string file(const std::string& name) const { return (folder_ / name).string(); }
  // Trains in one process, and returns its losses.
  std::vector<double> train(const std::string& run, const std::string& devices, const std::map<std::string, std::string>& environment,
                            const std::string& says) const {
    const Outcome outcome =
        on_standin(words({"--devices", devices, "--log", file(run + ".jsonl"), "-o", file(run + ".heddle")}), environment).run();
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(has(outcome.out, says)) << outcome.out << outcome.err;
    EXPECT_EQ(has(outcome.err, " operators run on the host for want of kernels on their devices: "), devices[0] == 'c') << outcome.err;
    return losses(run);
  }
  // Trains in two processes, which have `devices` each.
  std::vector<double> train_ranks(const std::string& run, int devices, const std::map<std::string, std::string>& environment = {}) const {
    std::vector<Tool> tools;
    for (int rank = 0; rank < 2; ++rank) {
      std::map<std::string, std::string> own = environment;
      own["HEDDLE_CUDA_STANDIN_FIRST_DEVICE"] = std::to_string(rank * devices);  // the GPUs of a machine are of one process each
      Words more = {"--rendezvous", "file:" + file("meeting"), "--rank", std::to_string(rank), "--ranks", "2",
                    "--log",        file(run + ".jsonl"),      "-o",     file(run + ".heddle")};
      more.insert(more.end(), devices == 1 ? std::initializer_list<std::string>{"--devices", "cuda:0"}
                                           : std::initializer_list<std::string>{"--devices", "cuda:0,cuda:1"});
      tools.push_back(on_standin(words(more), own));
    }
    expect_all_well(run_together(std::move(tools)));
    return losses(run);
  }
  uint64_t learned(const std::string& run) const { return checksum(testing::bytes_of(read_text(file(run + ".safetensors")))); }

 private:
  std::vector<double> losses(const std::string& run) const {
    std::vector<double> all;
    for (const Json& line : lines_of(file(run + ".jsonl")))
      if (line.contains("loss")) all.push_back(line["loss"].get<double>());
    return all;
  }
  const Recipe recipe_;
  const TemporaryFolder folder_;
  const std::string net_ = (folder_ / "net.heddle").string();
};

void expect_near(const std::vector<double>& found, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], tolerance * std::abs(expected[i])) << "step " << i + 1;
}

// In the order of sums that the host has, the bits are those of copies between the devices; simulated devices, whose kernels are the
// host's, and NCCL's own order of sums change little. Operators without kernels on GPUs are listed.
TEST_F(ToolNccl, LearnsWhatCollectivesOfTheHostLearn) {
  for (const Recipe& recipe : recipes) {
    SCOPED_TRACE(recipe.name);
    const Training training(recipe);
    const std::string devices = "cuda:0,cuda:1";
    const std::vector<double> copied = training.train("copied", devices, {{"HEDDLE_NCCL", "off"}}, "by cuda:AllReduce");
    const std::vector<double> fixed = training.train("fixed", devices, {}, "by nccl:AllReduce");
    EXPECT_EQ(fixed, copied);
    EXPECT_EQ(training.learned("fixed"), training.learned("copied"));
    expect_near(fixed, training.train("host", "sim:0,sim:1", {}, ""), 1e-6);
    expect_near(training.train("library", devices, {{"HEDDLE_NCCL_SUMS", "library"}}, "by nccl:AllReduce"), copied, 1e-6);
  }
}

TEST_F(ToolNccl, LearnsInTwoProcessesWhatOneLearns) {
  const Training training(recipes[0]);
  for (const int devices : {1, 2}) {
    SCOPED_TRACE(devices);
    const std::vector<double> one =
        training.train("one", devices == 1 ? "cuda:0,cuda:1" : "cuda:0,cuda:1,cuda:2,cuda:3", {}, "by nccl:AllReduce");
    expect_near(training.train_ranks("two", devices), one, 1e-6);
    expect_near(training.train_ranks("library", devices, {{"HEDDLE_NCCL_SUMS", "library"}}), one, 1e-6);
  }
}

// A rank without a GPU has another net: both say so, and name both.
TEST_F(ToolNccl, RefusesRanksOfWhichSomeHaveNoGpu) {
  const LenetJob job(2);
  std::vector<Tool> tools;
  for (int rank = 0; rank < 2; ++rank) {
    Words more = rank == 0 ? Words{"--devices", "cuda:0"} : Words{};
    tools.push_back(on_standin(job.rank(rank, "mixed", more)));
  }
  const std::vector<Outcome> outcomes = run_together(std::move(tools));
  int named = 0;
  for (int rank = 0; rank < 2; ++rank) {
    const std::string& err = outcomes[static_cast<size_t>(rank)].err;
    EXPECT_NE(outcomes[static_cast<size_t>(rank)].status, 0);
    named += has(err, "rank 1 has another net than rank 0") && has(err, "@cpu") && has(err, "@cuda:0");
  }
  EXPECT_EQ(named, 2) << outcomes[0].err << outcomes[1].err;
}

TEST_F(ToolNccl, RefusesRanksThatDiffer) {
  const LenetJob job(2);
  const auto both = [&](const std::map<std::string, std::string>& first, const std::map<std::string, std::string>& second,
                        const char* run) {
    std::vector<Tool> tools;
    tools.push_back(on_standin(job.rank(0, run, {"--devices", "cuda:0"}), first));
    tools.push_back(on_standin(job.rank(1, run, {"--devices", "cuda:0"}), second));
    std::string said;
    for (const Outcome& outcome : run_together(std::move(tools))) {
      EXPECT_NE(outcome.status, 0);
      said += outcome.err;
    }
    return said;
  };
  const std::map<std::string, std::string> other = {{"HEDDLE_CUDA_STANDIN_FIRST_DEVICE", "1"}};
  const std::string same = both({}, {}, "same");
  EXPECT_TRUE(has(same, "rank 0 and rank 1 have the same GPU")) << same;
  std::map<std::string, std::string> sums = other;
  sums["HEDDLE_NCCL_SUMS"] = "library";
  EXPECT_TRUE(has(both({}, sums, "sums"), "rank 1 has another HEDDLE_NCCL_SUMS than rank 0"));
  sums["HEDDLE_NCCL_SUMS"] = "quick";
  const std::string wrong = both({}, sums, "wrong");
  EXPECT_TRUE(has(wrong, "rank 1 can not take part in collectives of GPUs: HEDDLE_NCCL_SUMS is \"quick\"")) << wrong;
}

TEST_F(ToolNccl, ShowsItsVersionAmongDevices) {
  const Outcome outcome = on_standin({"devices", "--json"}).run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_EQ(object["plugins"], Json::parse(R"([{"name": "nccl", "description": "NCCL 2.28.9"}])"));
}

TEST(ToolDevices, SaysWhyThereIsNoNccl) {
  const Outcome outcome = Tool({"devices", "--json"}).set("HEDDLE_CUDA_LIBRARIES", "/nowhere").run();
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const Json object = Json::parse(outcome.out);
  EXPECT_TRUE(object["plugins"].empty());
  const auto of_nccl =
      std::find_if(object["unavailable"].begin(), object["unavailable"].end(), [](const Json& one) { return one["backend"] == "nccl"; });
  ASSERT_NE(of_nccl, object["unavailable"].end());
  EXPECT_TRUE(has((*of_nccl)["reason"].get<std::string>(), "NCCL can not be opened: ")) << (*of_nccl)["reason"];
}

}  // namespace
}  // namespace heddle::tool_tests
