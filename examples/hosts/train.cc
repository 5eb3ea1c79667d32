// train POINTS.json PREDICTOR.heddle: a program that teaches a net what it knows itself, which points of a square lie in a ring, and keeps
// what predicts.
//
// POINTS.json only has a loss. Heddle adds the gradients, an optimizer and a learning rate; the net itself tests what "train" learns, for
// they have their variables in common.
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "heddle/training.h"

namespace {

// Points of [-1, 1] x [-1, 1], and whether each lies in the ring.
struct Points {
  explicit Points(int64_t count) : xy(static_cast<size_t>(2 * count)), labels(static_cast<size_t>(count)) {}
  void draw(std::mt19937& random) {
    for (size_t i = 0; i < labels.size(); ++i) {
      for (size_t k = 2 * i; k < 2 * i + 2; ++k) xy[k] = static_cast<float>(random() >> 8) / (1 << 23) - 1;
      const float square = xy[2 * i] * xy[2 * i] + xy[2 * i + 1] * xy[2 * i + 1];
      labels[i] = square > 0.2f && square < 0.7f;
    }
  }
  // As inputs of the net; they stay where they are.
  std::vector<heddle::TensorView> views() {
    const auto count = static_cast<int64_t>(labels.size());
    return {{heddle::DType::f32, {count, 2}, xy.data()}, {heddle::DType::i64, {count}, labels.data()}};
  }
  std::vector<float> xy;
  std::vector<int64_t> labels;
};

heddle::Result<float> accuracy(heddle::Session& net, Points& points) {
  HEDDLE_TRY(const std::vector<heddle::Tensor> results, net.run(points.views()));
  return *static_cast<const float*>(results[1].data());
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
  HEDDLE_TRY(heddle::Session test, session.net("points"));
  HEDDLE_TRY(heddle::Session learner, session.net("train"));

  std::mt19937 random(1);
  Points batch(64), unseen(1000);
  unseen.draw(random);
  HEDDLE_TRY(heddle::Context step, learner.prepare(batch.views()));
  HEDDLE_CHECK(step.bind_input(0, batch.xy.data()));
  HEDDLE_CHECK(step.bind_input(1, batch.labels.data()));
  for (int i = 1; i <= 2000; ++i) {
    batch.draw(random);
    HEDDLE_CHECK(step.run());
    if (i % 500 != 0) continue;
    HEDDLE_TRY(const float right, accuracy(test, unseen));
    std::printf("step %d: loss %.4f, accuracy %.3f of points that it has not seen\n", i,
                static_cast<double>(*static_cast<float*>(step.output(0).data)), static_cast<double>(right));
  }

  // All that it takes to go on another day: weights, the state of the optimizer, the number of steps.
  const std::string saved = predictor + ".variables";
  HEDDLE_CHECK(session.save_variables(saved));
  HEDDLE_TRY(heddle::Session another_day, runtime.open(nets));
  HEDDLE_CHECK(another_day.load_variables(saved));
  HEDDLE_TRY(const float again, accuracy(another_day, unseen));
  std::printf("saved and loaded: accuracy %.3f, %zu variables\n", static_cast<double>(again), another_day.variables().size());

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
