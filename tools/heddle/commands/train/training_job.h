// The work of `heddle train`, after its options are read.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands/train/bad_sample_warnings.h"
#include "commands/train/data/training_data.h"
#include "commands/train/training_curves.h"
#include "commands/train/training_log.h"
#include "heddle/trainer.h"
#include "heddle/training.h"
#include "options/commit_option.h"
#include "options/limit_options.h"
#include "options/memory_limit_option.h"
#include "options/rank_flags.h"
#include "options/training_flags.h"
#include "process/interrupt.h"
#include "train/rank_exchange.h"

namespace heddle::tool {

struct TrainArguments {
  std::string file, net, test, init, loss = "loss", log, curve, output;
  DataFlags samples;
  std::vector<std::string> metrics;
  TrainingFlags training;
  LimitOptions limits;
  CommitOption commit;
  MemoryLimitOption memory_limit;
  RankFlags ranks;
  std::string last_batch = "drop", weights;
  int64_t steps = 0, epochs = 0, batch = 0 /* not given */, eval_every = 0, eval_epochs = 0;
  std::optional<uint64_t> seed;  // not given: that of the checkpoint, else 0
  std::string checkpoint_dir;
  int64_t checkpoint_every = 0;
  int keep = CheckpointOptions().keep;
  std::string best;  // NAME=min or NAME=max
  int patience = 0;
  bool resume = false, no_output = false, verbose = false;
  // Returns the file of the curves; none where they go to the terminal.
  std::string curve_file() const { return curve == "-" ? std::string() : curve; }
  // Options of the command line's contract that are not supported yet: for mixed precision.
  std::string accumulate, precision;
};

// The parts of the training, in the order of its public functions.
class TrainingJob {
 public:
  // `place`: which of the processes this one is that train together. Only rank 0 writes files.
  TrainingJob(const TrainArguments& options, const CommunicatorOptions& place, Report& report)
      : o_(place.rank == 0 ? options : without_files(options)), place_(place), report_(report) {}
  // Opens the net and the session, reads the data, and finds what --resume continues from. The ranks have met then, and all are ready.
  Status begin() { return told_to_ranks(open_and_read()); }
  // Trains. Interrupted, it writes a last checkpoint.
  Status run();
  bool has_learned() const { return !losses_.empty(); }
  // Saves the trained net, and the picture. Errors also: numerics, naming a variable that is not finite.
  Status save();
  // Draws the curves of what was learned so far, if they are asked for.
  Status draw() { return o_.curve.empty() || !has_learned() ? Status() : draw_curves(); }
  // Waits until all ranks have come as far: none is over while another may have to be started again.
  Status wait_for_ranks();
  void describe();

 private:
  static TrainArguments without_files(TrainArguments options);
  bool has_net(const std::string& name) const;
  Status add_training(const std::string& name);
  Status check_ranks(const std::string& name) const;
  Status open_and_read();
  Status open();
  Status read_data();
  Status agree_on_start();
  Status await_ranks();
  // Returns the error that it is given.
  Status told_to_ranks(Status status);
  void say_rank(const char* does) const;
  std::vector<PortInfo> inputs_of_data(const Session& net) const;
  int64_t steps_of_epoch() const;
  int64_t total_steps() const;
  int64_t steps_between_tests() const;
  int64_t batch_of(const std::vector<PortInfo>& inputs) const;
  Status check_files() const;
  Status check_pictures_stay() const;
  Status check_no_checkpoint(const std::string& what, const std::string& file) const;
  Status open_log();
  Status look_for_checkpoint();
  Status resume();
  Result<BestOptions> best() const;
  Status restore_best();
  Status open_test(const Session& all, const std::string& learning);
  Status run_init(const Session& all);
  void say_classes() const;
  void warn_of_no_output() const;
  void note_host_steps();
  void say_collectives() const;
  Status save_nets_with_variables();
  Status draw_curves();
  Result<std::set<std::string>> not_finite() const;
  // Called by the trainer.
  Status take_step(const TrainingStep& step);
  Status take_evaluation(const Evaluation& evaluation);
  void show(const TrainingStep& step);
  Json best_json() const;

  const TrainArguments o_;
  const CommunicatorOptions place_;
  Report& report_;
  Limits limits_;
  std::optional<Nets> nets_;  // in the form in which they are saved
  std::optional<Runtime> runtime_;
  std::optional<Session> session_, test_;
  std::unique_ptr<RankExchange> start_;  // until all ranks have read their data
  std::optional<TrainingData> data_;
  std::optional<Trainer> trainer_;
  std::optional<InterruptibleRun> interruptible_;  // until everything is saved
  std::vector<CheckpointInfo> candidates_;         // for --resume, the newest first
  std::optional<CheckpointInfo> from_;             // the one that it resumes from
  uint64_t seed_ = 0;
  int64_t batch_of_first_ = 0;  // of a rank that another one tells: that of the checkpoint; 0: there is none
  std::optional<TrainingLog> log_;
  BadSampleWarnings bad_samples_;
  int64_t batch_ = 0, samples_ = 0, between_ = 1;       // steps between two lines for people
  std::set<std::string> infinite_at_first_;             // variables, as masks may be infinite
  Series losses_;                                       // of the steps that were made here
  TrainingCurves curves_;                               // with those of an earlier training that its log has
  std::vector<std::pair<std::string, double>> tested_;  // of the last evaluation
  bool stopped_early_ = false;
  double seconds_ = 0;
  // Sums over the steps since progress was last shown.
  struct Pace {
    int64_t samples = 0;
    double read_ns = 0;
  };
  Pace pace_;
  uint64_t begun_ = 0, shown_ = 0;  // ticks of the first step, and when progress was last shown
};

}  // namespace heddle::tool
