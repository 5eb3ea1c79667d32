// Trainer: trains a net of a session with the samples of a dataset, and tests it.
//
//   auto trainer = heddle::Trainer::create(*train, points, options);    // a Session of a net that learns, a Dataset, a TrainerOptions
//   heddle::Status status = trainer->test_with(*test, unseen_points);   // another net of the session
//   status = trainer->run();                                            // calls options.on_step and options.on_evaluation
//
// Each run of a net that learns is a step: heddle/training.h says how nets get their gradients and updates. What is learned is in the
// variables of the session.
//
// Where the net was made for several ranks (DataParallelOptions::ranks), and the session is one of them (CommunicatorOptions), a trainer is
// one rank of a training: all ranks create one with the same options, samples and test, and make the same calls. TrainerOptions::batch is
// the batch of all together, of which each reads and works on its part, as equal as may be; losses, means and decisions are those of all
// samples, the same on all ranks. Before its first step each becomes what rank 0 is, in its step and its variables, and is refused if it
// is unlike it. Rank 0 alone reads and writes checkpoints, and it alone needs their folder. A rank that fails or is cancelled ends the
// calls of the others with Code::device_failed, at the latest after CommunicatorOptions::timeout_ns. When all have made their next call,
// they become what rank 0 is again, and go on; a rank may be another process then.
//
// Requires C++17; needs neither RTTI nor exceptions. docs/embedding.md shows a program.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/checkpoint.h"
#include "heddle/dataset.h"
#include "heddle/export.h"
#include "heddle/plan_info.h"
#include "heddle/session.h"
#include "heddle/status.h"

namespace heddle {

// One step that was made. Of a net without an output "learning_rate" or "gradient_norm" of one number (heddle/training.h) that one is
// unknown.
struct TrainingStep {
  int64_t step = 0;     // counted from 1
  int64_t epoch = 0;    // that its samples are of, counted from 1
  int64_t samples = 0;  // of all ranks
  double loss = 0;
  std::optional<double> learning_rate, gradient_norm;
  int64_t run_ns = 0;   // duration of the run
  int64_t read_ns = 0;  // how long the run waited for its samples
};

// One evaluation: the numbers that the test net has as outputs without axes, each the mean over all samples; then TrainerOptions::metrics.
struct Evaluation {
  int64_t step = 0;     // after how many steps
  int64_t samples = 0;  // that were read (TrainerOptions::max_bad_samples)
  std::vector<std::pair<std::string, double>> means;
};

// Where run() writes checkpoints (heddle/checkpoint.h), and when. A checkpoint is of one step; it is written beside the steps that follow,
// and the next one waits until it is complete: there is one copy of the variables, whose memory is made when the training begins and kept.
struct CheckpointOptions {
  std::string folder;  // exists already; empty: no checkpoints
  int64_t every = 0;   // steps between checkpoints; 0: one whenever an evaluation is due. There is one after the last step too
  int keep = 3;        // the number of newest files that are kept: older ones are removed once a newer one is complete. 0: all
};

// Which evaluation is the best one. The variables as they were then are kept: in a checkpoint, which is not removed while it is the best,
// or, without a folder for checkpoints, in memory.
struct BestOptions {
  std::string mean;      // the mean of an evaluation that decides, of an output or a metric: "accuracy"; empty: none is kept
  bool largest = false;  // the largest is the best; else the smallest
  int patience = 0;  // the training is over after that many evaluations in a row that are no better than the best. 0: they do not end it
};

struct TrainerOptions {
  std::string loss = "loss";  // the output of the net that is to become small: one number
  // The training is over after this many steps, or this many epochs if that is earlier (or earlier still: BestOptions::patience). 0: not
  // limited by it.
  int64_t steps = 0, epochs = 0;
  int64_t batch = 32;  // samples of a step
  LastBatch last_batch = LastBatch::drop;
  // The input of the net, f32 [batch] or [batch, 1], that is given the weight of each sample: 0 for one that only fills the last batch
  // (LastBatch::pad), else 1. The net weighs its samples by it. Empty: there is none.
  std::string weights;
  // The threads that read samples ahead, and how many batches they keep ready beside those that they are reading. They have a low priority.
  // With 0 threads, or a dataset that is in memory, each step reads its own.
  int reader_threads = 1, read_ahead = 2;
  // How many samples, of the training and of the test together, may be such that Dataset::read fails for them; one more ends the training
  // with its error. 0: the first one does. A batch lacks its bad samples: the last one that can be read is repeated in the places at the
  // end, with the weight 0 where the net takes `weights`; a net without weights counts the repeats. Each is counted and told of once, and
  // is not read again: which samples a step has depends on the data, the seed and the number of the step alone. A batch in which no sample
  // can be read is an error. Each rank counts those of its own part. Errors that are no fault of a sample end the training all the same:
  // out_of_memory, cancelled, busy, deadline_exceeded, interrupted, forked, device_failed, device_lost, not_implemented, internal (read()
  // has thrown).
  int64_t max_bad_samples = 0;
  bool shuffle = true;         // in each epoch, the samples come in another order; else always in that of the dataset
  uint64_t seed = 0;           // of the order of samples, and of the random operators of the net
  int64_t evaluate_every = 0;  // steps between evaluations; there is one after the last step too. 0: only that one
  // Further means of evaluations, computed on the host from the outputs of the test net:
  // - "accuracy:LOGITS,LABELS": how often the label is the class with the largest logit, of 1.
  // - "topK:LOGITS,LABELS": how often it is one of the K classes with the largest, for any K from 1 on: "top5:logits,labels".
  // - "perplexity:LOSS": e to the mean of LOSS, an output of the test net that is one number, over all samples.
  // Their means are called "accuracy", "top5" and "perplexity". LOGITS is an output, f16, bf16, f32 or f64 [samples, ..., classes]. LABELS
  // is an input, else an output, i64 or i32, with the dims of LOGITS but for the last one; perhaps with a dim of 1 in its place. Each label
  // counts once, but for those of samples that only fill the last batch. Of classes with equal logits the one with the smallest number
  // comes first. A label counts as wrong where one of its logits is a NaN.
  std::vector<std::string> metrics;
  CheckpointOptions checkpoints;
  BestOptions best;
  // Called after each step and after each evaluation, on the thread that calls run() or step(). An error that they return ends the
  // training. They may read and write variables of the session.
  std::function<Status(const TrainingStep&)> on_step;
  std::function<Status(const Evaluation&)> on_evaluation;
  // Likewise, before the step or the evaluation that lacks the sample, and from prepare() too: with Dataset::sample_name() and the error of
  // Dataset::read, in the order of the steps and of the places in a batch.
  std::function<Status(const std::string& sample, const Status& error)> on_bad_sample;
};

// Trains one net. Threads: one at a time, except cancel(). Keeps alive the session and the datasets.
class HEDDLE_API Trainer {
 public:
  // `net` updates its variables in each run; `data` has a value for each of its inputs. Errors: unknown_name (no output is called
  // options.loss and is one number; the net has no input of that name; there is no metric of that name); missing_input, naming an input
  // that the data lacks; invalid_argument (numbers of `options` out of range; fewer samples than a batch; a metric of another form);
  // duplicate_name (of metrics).
  static Result<Trainer> create(const Session& net, std::shared_ptr<const Dataset> data, const TrainerOptions& options = {});
  Trainer(Trainer&&) noexcept;
  Trainer& operator=(Trainer&&) noexcept;
  ~Trainer();

  // Lets evaluations run this net, of the same session, with these samples, options.batch of them at a time. With options.metrics, it
  // prepares the net for the first batch, so that what does not fit is found now. Errors: those of create; unknown_name, duplicate_name
  // (the net has a number of the name of a metric), dtype_mismatch, shape_mismatch and invalid_argument, naming the metric; those of
  // Session::prepare and Dataset::read. After an error evaluations are what they were.
  Status test_with(const Session& net, std::shared_ptr<const Dataset> data);
  // Compiles the net that learns for the first batch, which the first step would do otherwise. Errors: those of Session::prepare and of
  // Dataset::read.
  Status prepare();
  // Makes steps until the training is over, with the evaluations and checkpoints that are due, and continues where an earlier call has
  // ended. When it returns without an error, the last checkpoint is complete. Errors: those of step(), evaluate() and save_checkpoint(),
  // and those of the functions in `options`.
  Status run();
  // Makes one step, also beyond options.steps, and calls on_step. Where a step fails, variables are as they were before it
  // (SessionOptions::commit_late). Errors: those of Context::run and Dataset::read, with the step and its samples; numerics (the loss or
  // the norm of the gradients is not finite; the error names the sample, operator or variable that is first so; where RunOptions::
  // finite_outputs is examined, the step does not count and variables are as they were before it); unknown_name (the loss is not one
  // number); cancelled.
  Result<TrainingStep> step();
  // Runs the test net with all of its samples, and calls on_evaluation. Errors: those of Context::run and Dataset::read; invalid_argument
  // (there is no test net; a label of a metric is no class, naming the sample); unknown_name (no mean is called options.best.mean);
  // cancelled.
  Result<Evaluation> evaluate();
  // Writes a checkpoint of the last step, unless there is one, and waits until it is complete. After a step that was cancelled it first
  // waits for what that has left, for five seconds at most. Ranks other than 0 do nothing. Errors: invalid_argument (options.checkpoints
  // has no folder); those of Session::save_variables, also of a checkpoint that was being written. The training continues after an error.
  Status save_checkpoint();
  // Sets all variables of the session, and the number of steps, to those of a checkpoint: what follows is what would have followed without
  // an interruption, bit for bit. All or nothing. A net of another form that has the same variables, as one on other
  // devices, is no error: its net_checksum() is not that of the checkpoint. Ranks other than 0 do not look at `path`: they wait for what
  // rank 0 has when it makes its next call, also after an error here, which they are not told.
  // Errors: those of read_checkpoint_info() and Session::load_variables; invalid_argument (the order of samples would be another one: seed,
  // batch, last_batch, shuffle or the number of samples differs).
  Result<CheckpointInfo> resume(const std::string& path);
  // Sets all variables of the session, and the number of steps, to those of the best evaluation. Errors: invalid_argument (there was none);
  // those of resume().
  Status restore_best();
  // Waits until all ranks have made this call. A rank that ends before others have what they need of it, such as a file that rank 0 writes
  // after the training, leaves them to begin again without it. Does nothing without other ranks. Errors: device_failed, naming ranks that
  // are lost; cancelled.
  Status wait_for_ranks();
  // [any thread] Ends the call of run(), step() or evaluate() in progress, else the next one, which then returns Code::cancelled. A step is
  // ended half-way only where that leaves the variables as they were before it (SessionOptions::commit_late), else it is completed.
  void cancel();

  // Returns the names of the means that evaluations will have, in their order; none: there is no test net. Compiles it for its first
  // samples. Errors: those of Session::prepare and Dataset::read; invalid_argument (none of the first samples can be read).
  Result<std::vector<std::string>> test_means();
  // Returns how many different samples of the datasets could not be read and were left out, those of the training and those of the test.
  int64_t bad_samples() const;
  // Returns the number of steps that were made.
  int64_t steps() const;
  // Returns the best evaluation, as (step, mean); none: options.best has no name, or there was no evaluation.
  std::optional<std::pair<int64_t, double>> best() const;
  // Returns true if the training is over because of BestOptions::patience.
  bool is_stopped_early() const;
  // Returns the number of steps after which the training is over; -1: never.
  int64_t total_steps() const;
  // Returns the checksum of the text of the net that learns, as CheckpointInfo::net.
  std::string net_checksum() const;
  // Returns the plan of the last step, or, before the first one, that of prepare(). Null: none yet, or no memory to describe it.
  std::shared_ptr<const PlanInfo> plan() const;

 private:
  struct State;
  explicit Trainer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace heddle
