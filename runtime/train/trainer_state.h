// The state of a Trainer, and what it does with it: steps (trainer.cc), evaluations (trainer_evaluation.cc), checkpoints and the best of
// them (trainer_checkpoints.cc), samples that can not be read (trainer_bad_samples.cc), other ranks (trainer_ranks.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/trainer.h"
#include "train/batch_reader.h"
#include "train/checkpoint_writer.h"
#include "train/fed_net.h"
#include "train/metrics.h"
#include "train/rank_exchange.h"
#include "train/run_cancellation.h"
#include "weights/safetensors.h"

namespace heddle {

struct Trainer::State {
  State(FedNet net, const TrainerOptions& asked, const BatchSequence& of_batches, std::unique_ptr<RankExchange> of_ranks);

  // Steps and evaluations.
  Status run();
  Status prepare();
  Status read(int64_t step);  // its samples
  Status step(TrainingStep* made);
  Status evaluate(Evaluation* made);
  Status evaluate_batch(int64_t first, Evaluation* made);
  Result<Context*> prepare_test(FedNet& net, BatchReader& of);
  int64_t total_steps() const;  // -1: no end
  bool is_over() const;
  bool is_stopped_early() const { return options.best.patience > 0 && since_best >= options.best.patience; }
  bool is_due(int64_t every) const { return (every > 0 && made % every == 0) || made == total_steps(); }
  Status check_finite(const TrainingStep& made) const;
  uint64_t finite_outputs() const;
  Status explain(Context& context, Status found);
  std::string variable_not_finite() const;
  Status not_finite(int64_t step, const char* what, double number) const;
  Status no_loss() const;

  // Counts and tells of the samples that a batch lacks (trainer_bad_samples.cc).
  Status take_bad(const SampleBatch& read, const FedNet& net, std::set<int64_t>& counted, const std::string& during);
  void leave_out_bad(Evaluation* of, int64_t bad) const;

  // The trainer as one of several ranks (trainer_ranks.cc).
  Status check_parts() const;
  Status join();
  TextPairs likeness() const;
  Status add_net_difference(Status unlike, const std::vector<TextPairs>& of_ranks, size_t rank);
  static Status check_alike(const TextPairs& first, const TextPairs& other, size_t rank);
  Status take_progress(std::string_view text);
  Status take_variables();
  Status await_ranks();
  Status wait_for_ranks();
  Status sum_over_ranks(Evaluation* of, int64_t* bad);
  template <class Act>
  Status with_ranks(const Act& act);
  // Takes note of how a call has ended: after an error the ranks come together anew.
  Status ended(Status status) noexcept;
  bool writes_files() const { return !ranks || ranks->is_first(); }

  // Checkpoints and the best evaluation.
  Status save_checkpoint();
  Status take(Status of_writer);
  CheckpointInfo checkpoint_info() const;
  Result<CheckpointInfo> resume(const std::string& path);
  Status check_order(const CheckpointInfo& of) const;
  Status note_best(const Evaluation& of);
  Status restore_best();
  void take_best(const CheckpointInfo& of);
  std::string best_rule() const;
  std::string path_of(int64_t step) const;
  bool has_folder() const { return !options.checkpoints.folder.empty(); }

  FedNet learner;
  std::optional<FedNet> tester;
  Metrics metrics;  // what they are of is in the tester
  const TrainerOptions options;
  const BatchSequence order;
  const int64_t batches_of_epoch;
  BatchReader reader;
  std::unique_ptr<BatchReader> test_reader;
  CheckpointWriter writer;
  const bool commits_late;
  const std::string data_identity;                                    // CheckpointInfo::data
  const std::string net_checksum;                                     // CheckpointInfo::net
  SharedMemory memory;                                                // of both nets, which take turns
  std::optional<size_t> loss, rate, norm;                             // outputs of the net that learns
  int64_t made = 0;                                                   // steps
  double last_loss = 0;                                               // of the last one
  int64_t evaluations = 0;                                            // that were completed
  Evaluation evaluated;                                               // the last one
  bool evaluation_due = false, saving_due = false, best_due = false;  // after the last step
  int64_t best_step = -1;                                             // of the best evaluation; -1: there was none
  double best_mean = 0;
  int64_t since_best = 0;                                  // evaluations that were no better
  int64_t judged_step = -1;                                // of the last evaluation that was compared
  std::vector<std::shared_ptr<const Blob>> best_contents;  // of the variables then, where there is no folder for checkpoints
  std::set<int64_t> bad_of_training, bad_of_test;          // samples that were counted as bad
  int64_t bad_samples = 0;                                 // those of both, and of earlier test datasets
  std::unique_ptr<RankExchange> ranks;                     // null: it trains alone
  bool joined = false;                                     // with several ranks: it is what rank 0 is
  bool in_step = false;                                    // with several ranks: all have come to a step since
  RunCancellation cancellation;
};

}  // namespace heddle
