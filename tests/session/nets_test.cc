// Nets before they are opened, as a program uses the installed headers: with training added, differentiated, reduced to a predictor,
// written.
#include <gtest/gtest.h>

#include <algorithm>

#include "load/temporary_folder.h"
#include "session/line_net.h"

namespace heddle {
namespace {

using testing::TemporaryFolder;
using namespace testing_line;
using Names = std::vector<std::string>;

TEST(Nets, ANetLearnsBesideItself) {
  for (const int threads : {1, 2}) {
    const Runtime r = testing_nets::runtime(threads);
    const Nets nets = learning_line(r);
    EXPECT_EQ(nets.names(), (Names{"line", "train"}));
    EXPECT_FALSE(*nets.learns("line"));
    EXPECT_TRUE(*nets.learns("train"));
    const Session session = open(r, nets);
    EXPECT_EQ(session.name(), "line");
    Names variables = session.variables();
    std::sort(variables.begin(), variables.end());
    EXPECT_EQ(variables, (Names{"b", "b.mean", "b.squares", "step", "w", "w.mean", "w.squares"}));
    Names outputs;
    for (const PortInfo& port : session.net("train")->outputs()) outputs.push_back(port.name);
    EXPECT_EQ(outputs, (Names{"guess", "loss", "learning_rate"}));
    const float first = number(run_line(session, "line")[1]);
    EXPECT_EQ(number(run_line(session, "train")[1]), first) << "the loss of a step is that before its update";
    train(session, 299);
    EXPECT_LT(number(run_line(session, "line")[1]), 0.001F * first);
    EXPECT_EQ(*static_cast<const int64_t*>(session.read_variable("step")->data()), 300);
  }
}

TEST(Nets, WhatLearnsMayTakeThePlaceOfWhatItIsMadeOf) {
  const Runtime r = testing_nets::runtime();
  Nets nets = line();
  ASSERT_TRUE(nets.add_training(r, "line", learning("momentum"), "line").ok());
  EXPECT_EQ(nets.names(), Names{"line"});
  EXPECT_TRUE(*nets.learns("line"));
}

TEST(Nets, ARateFollowsItsSchedule) {
  const Runtime r = testing_nets::runtime();
  const Session session = open(r, learning_line(r, "sgd"));
  EXPECT_FLOAT_EQ(number(run_line(session, "train")[2]), 0.1F);
  EXPECT_FLOAT_EQ(number(run_line(session, "train")[2]), 0.099F);
}

// b begins with 0: after one step its average is half of it.
TEST(Nets, WhatPredictsMayHaveAverages) {
  const Runtime r = testing_nets::runtime();
  Nets nets = line();
  TrainingOptions how = learning("sgd");
  how.average = 0.5;
  ASSERT_TRUE(nets.add_training(r, "line", how, "train").ok());
  PredictorOptions predicts;
  predicts.outputs = {"guess"};
  predicts.average = true;
  const Session session = open(r, nets);
  train(session, 1);
  ASSERT_TRUE(nets.take_variables(session).ok());
  ASSERT_TRUE(nets.add_predictor("line", predicts).ok());
  const Session averaged = open(r, *nets.only({"predict"}));
  EXPECT_EQ(number(*averaged.read_variable("b")), number(*session.read_variable("b")) / 2);
  Nets without = learning_line(r);
  const Status refused = without.add_predictor("line", predicts);
  EXPECT_EQ(refused.code(), Code::invalid_argument) << refused.text();
}

TEST(Nets, GradientsLeaveANet) {
  const Runtime r = testing_nets::runtime();
  Nets nets = line();
  DifferentiateOptions options;
  options.losses = {"loss"};
  options.wanted = {"b", "x"};
  options.outputs = true;
  const auto gradients = nets.add_gradients(r, "line", options, "gradients");
  ASSERT_TRUE(gradients.ok()) << gradients.status().text();
  ASSERT_EQ(gradients->size(), 2u);
  EXPECT_EQ((*gradients)[0].of, "b");
  EXPECT_EQ((*gradients)[0].dense, "b.gradient");
  EXPECT_FALSE(*nets.learns("gradients"));
  const Session session = open(r, nets);
  const std::vector<Tensor> ran = run_line(session, "gradients");
  ASSERT_EQ(ran.size(), 4u);
  EXPECT_EQ(ran[3].shape(), (Shape{4, 2}));
  // The gradient of the mean of (guess - y)^2 by b is the mean of 2 (guess - y).
  const auto* const guess = static_cast<const float*>(ran[0].data());
  const float expected = (guess[0] - 1 + guess[1] - 4 + guess[2] + 1 + guess[3] - 2) / 2;
  EXPECT_NEAR(number(ran[2]), expected, 1e-5F);
}

TEST(Nets, WhatPredictsIsWrittenAloneWithWhatWasLearned) {
  const TemporaryFolder folder;
  const Runtime r = testing_nets::runtime();
  Nets nets = learning_line(r);
  const Session session = open(r, nets);
  train(session, 50);
  PredictorOptions options;
  options.outputs = {"guess"};
  ASSERT_TRUE(nets.add_predictor("train", options).ok());
  ASSERT_TRUE(nets.take_variables(session).ok());
  auto predict = nets.only({"predict"});
  ASSERT_TRUE(predict.ok()) << predict.status().text();
  const std::string file = (folder / "predict.heddle").string();
  ASSERT_TRUE(predict->write(file).ok());
  auto opened = r.open(file);
  ASSERT_TRUE(opened.ok()) << opened.status().text();
  ASSERT_EQ(opened->inputs().size(), 1u);
  const std::vector<float> x = {0, 0, 1, 0, 0, 1, 1, 1};
  const auto guess = opened->run({testing_nets::view(x.data(), DType::f32, Shape{4, 2})});
  ASSERT_TRUE(guess.ok()) << guess.status().text();
  const std::vector<Tensor> learned = run_line(session, "line");
  EXPECT_EQ(std::memcmp((*guess)[0].data(), learned[0].data(), 4 * sizeof(float)), 0);
}

TEST(Nets, WhatIsWrittenGoesOnAsIfNothingHadBeen) {
  const TemporaryFolder folder;
  const Runtime r = testing_nets::runtime();
  Nets nets = learning_line(r);
  const Session whole = open(r, nets);
  train(whole, 20);
  const Session half = open(r, nets);
  train(half, 10);
  ASSERT_TRUE(nets.take_variables(half).ok());
  for (const char* name : {"trained.heddle", "trained.json"}) {
    const std::string file = (folder / name).string();
    ASSERT_TRUE(nets.write(file).ok());
    auto read = Nets::read(file);
    ASSERT_TRUE(read.ok()) << read.status().text();
    EXPECT_EQ(read->files(), Names{file});
    const Session other = open(r, *read);
    EXPECT_EQ(contents(other), contents(half));
    train(other, 10);
    EXPECT_EQ(contents(other), contents(whole)) << name;
  }
}

TEST(Nets, WhatIsRefusedChangesNothing) {
  const Runtime r = testing_nets::runtime();
  Nets nets = learning_line(r);
  const auto refused = [&](const std::string& of, const TrainingOptions& options) {
    return nets.add_training(r, of, options, "again").code();
  };
  EXPECT_EQ(refused("lien", learning()), Code::unknown_name);
  EXPECT_EQ(refused("line", learning("sdg")), Code::unknown_name);
  EXPECT_EQ(refused("train", learning()), Code::invalid_argument) << "it learns already";
  TrainingOptions other = learning();
  other.losses = {"y"};
  EXPECT_EQ(refused("line", other), Code::invalid_argument) << "no loss depends on a variable";
  other.losses = {"los"};
  EXPECT_EQ(refused("line", other), Code::unknown_name);
  DifferentiateOptions gradients;
  gradients.losses = {"loss"};
  gradients.wanted = {"nothing"};
  EXPECT_EQ(nets.add_gradients(r, "line", gradients, "again").status().code(), Code::unknown_name);
  PredictorOptions predictor;
  EXPECT_EQ(nets.add_predictor("train", predictor).code(), Code::invalid_argument);
  predictor.outputs = {"loss"};
  predictor.inputs = {"x"};
  EXPECT_EQ(nets.add_predictor("train", predictor).code(), Code::missing_input);
  EXPECT_EQ(nets.only({}).status().code(), Code::invalid_argument);
  EXPECT_EQ(nets.only({"predict"}).status().code(), Code::unknown_name);
  EXPECT_EQ(nets.learns("predict").status().code(), Code::unknown_name);
  EXPECT_EQ(Nets::read("no_such.heddle").status().code(), Code::file_not_found);
  EXPECT_EQ(nets.names(), (Names{"line", "train"}));
  // A session with another optimizer does not have this one's state.
  const Session session = open(r, learning_line(r, "momentum"));
  const Status taken = nets.take_variables(session);
  EXPECT_EQ(taken.code(), Code::unknown_name);
  EXPECT_NE(taken.text().find("the session has no variable \"w.mean\""), std::string::npos) << taken.text();
  EXPECT_EQ(nets.write("/no_such_folder/net.heddle").code(), Code::file_unwritable);
}

TEST(Nets, CopiesAreChangedApart) {
  const Runtime r = testing_nets::runtime();
  const Nets nets = line();
  Nets copy = nets;
  ASSERT_TRUE(copy.add_training(r, "line", learning(), "train").ok());
  EXPECT_EQ(nets.names(), Names{"line"});
  EXPECT_EQ(copy.names(), (Names{"line", "train"}));
}

}  // namespace
}  // namespace heddle
