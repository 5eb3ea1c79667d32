// train_ranks POINTS.json RENDEZVOUS RANK RANKS: one of several processes that together teach the net of train.cc (docs/distributed.md).
//
// All have the same points, of which each reads its part of every batch. When one of them has ended, as by a signal, the others say so and
// wait for it; when it is started again they go on with what rank 0 has.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "heddle/trainer.h"
#include "heddle/training.h"
#include "points.h"

namespace {

heddle::Status train(const char* net, const char* rendezvous, int rank, int ranks) {
  HEDDLE_TRY(const heddle::Runtime runtime, heddle::Runtime::create({}));
  HEDDLE_TRY(heddle::Nets nets, heddle::Nets::read(net));
  heddle::TrainingOptions how;
  how.losses = {"loss"};
  how.optimizer = "adam";
  how.parallel.ranks = ranks;
  HEDDLE_TRY(how.learning_rate, heddle::LearningRate::parse(0.01, "cosine(2000)"));
  HEDDLE_CHECK(nets.add_training(runtime, "points", how, "train"));

  heddle::SessionOptions options;
  heddle::CommunicatorOptions& world = options.communicators.emplace_back();
  world.name = how.parallel.communicator;
  world.rank = rank;
  world.size = ranks;
  world.rendezvous = rendezvous;  // "file:/shared/job", "redis:HOST:PORT/job", or "pmix" below mpirun
  HEDDLE_TRY(const heddle::Session session, runtime.open(nets, options));

  Points points(1, 128000), unseen(2, 1000);
  heddle::TrainerOptions training;
  training.batch = 64;  // of all ranks together
  training.epochs = 1;
  training.evaluate_every = 500;
  training.on_evaluation = [&](const heddle::Evaluation& of) {
    if (rank == 0) std::printf("step %d: accuracy %.3f of points that it has not seen\n", static_cast<int>(of.step), of.means[1].second);
    return heddle::Status();
  };
  HEDDLE_TRY(const heddle::Session learner, session.net("train"));
  HEDDLE_TRY(const heddle::Session test, session.net("points"));
  HEDDLE_TRY(auto samples, points.dataset());
  HEDDLE_TRY(auto unseen_samples, unseen.dataset());
  HEDDLE_TRY(heddle::Trainer trainer, heddle::Trainer::create(learner, samples, training));
  HEDDLE_CHECK(trainer.test_with(test, unseen_samples));

  // A rank that was lost ends the call of all others with device_failed. The next call waits until all are there again.
  heddle::Status status = trainer.run();
  for (int again = 0; again < 3 && status.code() == heddle::Code::device_failed; ++again) {
    std::fprintf(stderr, "rank %d, after step %d: %s\n", rank, static_cast<int>(trainer.steps()), status.text().c_str());
    status = trainer.run();
  }
  // Here rank 0 would save what was learned, while the others wait.
  return status.ok() ? trainer.wait_for_ranks() : status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "usage: train_ranks POINTS.json RENDEZVOUS RANK RANKS\n"), 2;
  const heddle::Status status = train(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]));
  if (!status.ok()) return std::fprintf(stderr, "%s\n", status.text().c_str()), 1;
  return 0;
}
