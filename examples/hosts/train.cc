// train POINTS.json PREDICTOR.heddle: a program that teaches a net what it knows itself, which points of a square lie in a ring, and keeps
// what predicts.
//
// POINTS.json only has a loss. Heddle adds the gradients, an optimizer and a learning rate; the net itself tests what "train" learns, for
// they have their variables in common.
#include <cstdio>
#include <string>
#include <vector>

#include "heddle/trainer.h"
#include "heddle/training.h"
#include "points.h"

namespace {

heddle::Result<heddle::Trainer> trainer_of(const heddle::Session& session, Points& points, Points& unseen,
                                           const heddle::TrainerOptions& options) {
  HEDDLE_TRY(const heddle::Session learner, session.net("train"));
  HEDDLE_TRY(const heddle::Session test, session.net("points"));
  HEDDLE_TRY(auto samples, points.dataset());
  HEDDLE_TRY(auto unseen_samples, unseen.dataset());
  HEDDLE_TRY(heddle::Trainer trainer, heddle::Trainer::create(learner, samples, options));
  HEDDLE_CHECK(trainer.test_with(test, unseen_samples));
  return trainer;
}

heddle::Status train(const char* net, const std::string& predictor) {
  HEDDLE_TRY(const heddle::Runtime runtime, heddle::Runtime::create({}));
  HEDDLE_TRY(heddle::Nets nets, heddle::Nets::read(net));

  heddle::TrainingOptions how;
  how.losses = {"loss"};
  how.optimizer = "adam";
  how.settings = {{"weight_decay", 1e-5}};
  HEDDLE_TRY(how.learning_rate, heddle::LearningRate::parse(0.01, "cosine(2000)"));
  HEDDLE_CHECK(nets.add_training(runtime, "points", how, "train"));

  heddle::SessionOptions options;
  options.seed = 1;  // of the variables' first contents
  HEDDLE_TRY(heddle::Session session, runtime.open(nets, options));

  Points points(1, 128000), unseen(2, 1000);
  heddle::TrainerOptions training;
  training.batch = 64;
  training.epochs = 1;
  training.evaluate_every = 500;
  double loss = 0;
  training.on_step = [&](const heddle::TrainingStep& step) { return loss = step.loss, heddle::Status(); };
  training.on_evaluation = [&](const heddle::Evaluation& of) {
    std::printf("step %d: loss %.4f, accuracy %.3f of points that it has not seen\n", static_cast<int>(of.step), loss, of.means[1].second);
    return heddle::Status();
  };
  HEDDLE_TRY(heddle::Trainer trainer, trainer_of(session, points, unseen, training));
  HEDDLE_CHECK(trainer.run());

  // All that it takes to go on another day: weights, the state of the optimizer, the number of steps.
  const std::string saved = predictor + ".variables";
  HEDDLE_CHECK(session.save_variables(saved));
  HEDDLE_TRY(heddle::Session another_day, runtime.open(nets));
  HEDDLE_CHECK(another_day.load_variables(saved));
  HEDDLE_TRY(heddle::Trainer again, trainer_of(another_day, points, unseen, {}));
  HEDDLE_TRY(const heddle::Evaluation same, again.evaluate());
  std::printf("saved and loaded: accuracy %.3f, %zu variables\n", same.means[1].second, another_day.variables().size());

  // What is shipped: no labels, no loss, no optimizer.
  heddle::PredictorOptions wanted;
  wanted.outputs = {"logits"};
  HEDDLE_CHECK(nets.add_predictor("train", wanted));
  HEDDLE_CHECK(nets.take_variables(session));
  HEDDLE_TRY(const heddle::Nets shipped, nets.only({"predict"}));
  HEDDLE_CHECK(shipped.write(predictor));

  HEDDLE_TRY(heddle::Session predict, runtime.open(predictor));
  float two[4] = {0.6f, 0.2f, 0.1f, 0.1f};
  HEDDLE_TRY(const std::vector<heddle::Tensor> logits, predict.run({{heddle::DType::f32, {2, 2}, two}}));
  const auto* const of = static_cast<const float*>(logits[0].data());
  for (int i = 0; i < 2; ++i)
    std::printf("(%g, %g) lies %s the ring\n", static_cast<double>(two[2 * i]), static_cast<double>(two[2 * i + 1]),
                of[2 * i + 1] > of[2 * i] ? "in" : "outside");
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: train POINTS.json PREDICTOR.heddle\n"), 2;
  const heddle::Status status = train(argv[1], argv[2]);
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.text().c_str()), 1;
  return 0;
}
