#include "heddle/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>

#include "base/checksum.h"
#include "base/element.h"
#include "base/exceptions.h"
#include "base/library_version.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "net/print.h"
#include "plugin/host.h"
#include "session/session_impl.h"
#include "train/batch_sequence.h"
#include "train/checkpoint_writer.h"
#include "train/fed_net.h"

namespace heddle {
namespace {

int64_t ns_since(uint64_t begin) {
  return static_cast<int64_t>(ticks_to_ns(ticks() - begin));
}

Status check(const TrainerOptions& options) {
  const std::pair<const char*, int64_t> numbers[] = {{"steps", options.steps},
                                                     {"epochs", options.epochs},
                                                     {"evaluate_every", options.evaluate_every},
                                                     {"checkpoints.every", options.checkpoints.every},
                                                     {"checkpoints.keep", options.checkpoints.keep}};
  for (const auto& [name, number] : numbers)
    if (number < 0) return {Code::invalid_argument, fmt::format("{} is {}", name, number), "give 0, or more"};
  if (options.batch < 1) return {Code::invalid_argument, fmt::format("batch is {}", options.batch), "give 1, or more"};
  return {};
}

}  // namespace

struct Trainer::State {
  State(FedNet net, const TrainerOptions& asked, BatchSequence order)
      : learner(std::move(net)),
        options(asked),
        sequence(std::move(order)),
        writer(Internals::of(learner.session()).variables, asked.checkpoints),
        commits_late(Internals::of(learner.session()).options.commit_late) {}

  Status no_loss() const {
    return {Code::unknown_name,
            fmt::format("net {} has no output {} that is one number", quoted(learner.session().name()), quoted(options.loss)),
            "name its loss"};
  }
  int64_t total_steps() const {
    int64_t by_epochs = -1;
    if (options.epochs > 0 && __builtin_mul_overflow(options.epochs, sequence.batches_of_epoch(), &by_epochs)) by_epochs = INT64_MAX;
    if (by_epochs < 0 || options.steps == 0) return options.steps > 0 ? options.steps : by_epochs;
    return std::min(options.steps, by_epochs);
  }
  bool is_due(int64_t every) const { return (every > 0 && made % every == 0) || made == total_steps(); }
  // Returns the output's number after a run; none: there is no such output, or it is not one number.
  static std::optional<double> number(const Context& context, const std::optional<size_t>& output) {
    if (!output) return std::nullopt;
    const TensorView view = context.output(*output);
    return view.shape.element_count() == 1 && view.data ? std::optional<double>(element(view, 0)) : std::nullopt;
  }
  Status read(int64_t step) {
    return learner.read(sequence.request(step)).during(fmt::format("while the samples of step {} were read", step + 1));
  }
  Status prepare();
  Status step(TrainingStep* made);
  Status check_finite(const TrainingStep& made) const;
  Status evaluate(Evaluation* made);
  Status evaluate_batch(int64_t first, Evaluation* made);
  Status save_checkpoint();
  Status take(Status of_writer);
  CheckpointInfo checkpoint_info() const;
  Result<CheckpointInfo> resume(const std::string& path);
  Status check_order(const CheckpointInfo& of) const;
  Status run();

  FedNet learner;
  std::optional<FedNet> tester;
  TrainerOptions options;
  BatchSequence sequence;
  CheckpointWriter writer;
  const bool commits_late;
  SharedMemory memory;  // of both nets, which take turns
  std::optional<size_t> loss, rate, norm;
  int64_t made = 0;                                 // steps
  double last_loss = 0;                             // of the last one
  bool evaluation_due = false, saving_due = false;  // after the last step
  Evaluation evaluated;                             // the last one
  std::vector<int64_t> tested;                      // all samples of the test data
  RunCancellation cancellation;
};

Status Trainer::State::prepare() {
  HEDDLE_CHECK(read(made));
  return learner.prepare(memory).status();
}

Status Trainer::State::step(TrainingStep* of) {
  HEDDLE_CHECK(cancellation.take());
  of->step = made + 1;
  const uint64_t begin = ticks();
  const BatchRequest request = sequence.request(made);
  of->epoch = request.epoch + 1;
  of->samples = request.count;
  HEDDLE_CHECK(read(made));
  of->read_ns = ns_since(begin);
  HEDDLE_TRY(Context* const context, learner.prepare(memory));
  RunOptions run;
  run.seed = options.seed;
  const uint64_t before = ticks();
  Status status = cancellation.run(*context, run);
  if (status.code() == Code::cancelled) return status;
  if (!status.ok()) return learner.with_samples(std::move(status), fmt::format("in step {}", of->step));
  of->run_ns = ns_since(before);
  const std::optional<double> value = number(*context, loss);
  if (!value) return no_loss();
  of->loss = *value;
  of->learning_rate = number(*context, rate);
  of->gradient_norm = number(*context, norm);
  made = of->step;
  last_loss = of->loss;
  evaluation_due = is_due(options.evaluate_every);
  saving_due =
      !options.checkpoints.folder.empty() && is_due(options.checkpoints.every > 0 ? options.checkpoints.every : options.evaluate_every);
  if (options.on_step) HEDDLE_CHECK(options.on_step(*of));
  return check_finite(*of);
}

Status Trainer::State::check_finite(const TrainingStep& of) const {
  if (!std::isfinite(of.loss)) {
    const std::string data = learner.not_finite_text();
    return {Code::numerics, fmt::format("the loss of step {} is {}{}{}", of.step, of.loss, data.empty() ? "" : ": ", data),
            data.empty() ? "take a smaller learning rate, or clip gradients" : "mend the data"};
  }
  // A factor that is not finite would make the gradients not finite, and so all later weights.
  if (of.gradient_norm && !std::isfinite(*of.gradient_norm))
    return {Code::numerics, fmt::format("the norm of the gradients of step {} is {}", of.step, *of.gradient_norm),
            "take a smaller learning rate, limit each number of the gradients too, or compute in a wider dtype"};
  return {};
}

Status Trainer::State::evaluate(Evaluation* of) {
  if (!tester) return {Code::invalid_argument, "there is no net to test with", "call test_with() first"};
  of->step = made;
  of->samples = static_cast<int64_t>(tested.size());
  for (int64_t first = 0; first < of->samples; first += options.batch) HEDDLE_CHECK(evaluate_batch(first, of));
  evaluation_due = false;
  evaluated = *of;
  return options.on_evaluation ? options.on_evaluation(*of) : Status();
}

Status Trainer::State::evaluate_batch(int64_t first, Evaluation* of) {
  const int64_t count = std::min(options.batch, of->samples - first);
  HEDDLE_CHECK(tester->read({tested.data() + first, count, options.seed, -1}), "while the samples of a test were read");
  HEDDLE_TRY(Context* const context, tester->prepare(memory), "while testing");
  RunOptions run;
  run.seed = options.seed;
  Status status = cancellation.run(*context, run);
  if (status.code() == Code::cancelled) return status;
  if (!status.ok()) return tester->with_samples(std::move(status), "while testing");
  const std::vector<PortInfo>& outputs = tester->outputs();
  size_t at = 0;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const TensorView view = context->output(i);
    if (view.shape.rank() != 0 || !view.data) continue;
    if (first == 0) of->means.emplace_back(outputs[i].name, 0);
    of->means[at++].second += element(view, 0) * static_cast<double>(count) / static_cast<double>(of->samples);
  }
  return {};
}

CheckpointInfo Trainer::State::checkpoint_info() const {
  CheckpointInfo info;
  info.step = made;
  info.loss = last_loss;
  if (evaluated.step == made) info.means = evaluated.means;
  info.seed = options.seed;
  info.samples = learner.data().samples();
  info.batch = options.batch;
  info.keeps_last_batch = options.last_batch == LastBatch::keep;
  info.shuffles = options.shuffle;
  info.version = library_version();
  const std::string text = print(Internals::of(learner.session()).net);
  info.net = hex(checksum(std::as_bytes(std::span(text.data(), text.size()))));
  return info;
}

Status Trainer::State::save_checkpoint() {
  if (options.checkpoints.folder.empty())
    return {Code::invalid_argument, "there is no folder for checkpoints", "name one in TrainerOptions::checkpoints"};
  saving_due = false;
  return writer.newest() == made ? Status() : take(writer.begin(checkpoint_info()));
}

// Takes note of what the writer says: a last checkpoint that has failed is still due.
Status Trainer::State::take(Status of_writer) {
  if (!of_writer.ok()) saving_due = made == total_steps();
  return of_writer;
}

// Checks that the next step has the samples that it would have had in the training of the checkpoint.
Status Trainer::State::check_order(const CheckpointInfo& of) const {
  const CheckpointInfo own = checkpoint_info();
  const auto differ = [&](const char* what, const auto& theirs, const auto& ours) -> Status {
    return {Code::invalid_argument, fmt::format("checkpoint {}: its training has {} {}, this one {}", quoted(of.path), what, theirs, ours),
            "continue with the same, or load its variables alone: load_variables()"};
  };
  if (of.seed != own.seed) return differ("seed", of.seed, own.seed);
  if (of.samples != own.samples) return differ("samples:", of.samples, own.samples);
  if (of.batch != own.batch) return differ("batch", of.batch, own.batch);
  if (of.keeps_last_batch != own.keeps_last_batch)
    return differ("last_batch", of.keeps_last_batch ? "keep" : "drop", own.keeps_last_batch ? "keep" : "drop");
  if (of.shuffles != own.shuffles) return differ("shuffle", of.shuffles, own.shuffles);
  return {};
}

Result<CheckpointInfo> Trainer::State::resume(const std::string& path) {
  HEDDLE_CHECK(writer.wait());
  const Session::Impl& session = Internals::of(learner.session());
  HEDDLE_CHECK(session.runtime->made.check());
  HEDDLE_TRY(ReadCheckpoint read, read_checkpoint(*session.variables, path, session.options.limits));
  HEDDLE_CHECK(check_order(read.info));
  const bool same_net = read.info.net == checkpoint_info().net;
  HEDDLE_CHECK(session.variables->replace(read.contents));
  made = read.info.step;
  last_loss = read.info.loss;
  evaluated = {};
  evaluation_due = is_due(options.evaluate_every) && read.info.means.empty();
  saving_due = false;
  std::error_code none;
  const bool is_in_folder = std::filesystem::equivalent(std::filesystem::path(path).parent_path() / ".", options.checkpoints.folder, none);
  writer.set_newest(is_in_folder ? made : -1);
  if (!same_net) {
    const std::string text = fmt::format(
        "checkpoint {} was written by another form of net {}: on other devices, by another version, or changed since; the variables are "
        "the same",
        quoted(path), quoted(learner.session().name()));
    host_table()->log(HEDDLE_LOG_WARNING, text.data(), text.size());
  }
  return std::move(read.info);
}

Status Trainer::State::run() {
  const int64_t total = total_steps();
  for (;;) {
    if (evaluation_due && tester) {
      Evaluation of;
      HEDDLE_CHECK(evaluate(&of));
    }
    if (saving_due) HEDDLE_CHECK(save_checkpoint());
    if (total >= 0 && made >= total) return take(writer.wait());
    HEDDLE_CHECK(take(writer.poll()));
    TrainingStep of;
    HEDDLE_CHECK(step(&of));
  }
}

Trainer::Trainer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Trainer::Trainer(Trainer&&) noexcept = default;
Trainer& Trainer::operator=(Trainer&&) noexcept = default;
Trainer::~Trainer() = default;

Result<Trainer> Trainer::create(const Session& net, std::shared_ptr<const Dataset> data, const TrainerOptions& options) try {
  HEDDLE_CHECK(check(options));
  HEDDLE_TRY(FedNet learner, FedNet::create(net, std::move(data)));
  const int64_t samples = learner.data().samples();
  if (samples < options.batch && (options.last_batch == LastBatch::drop || samples == 0))
    return Status(Code::invalid_argument, fmt::format("there are {} samples, fewer than a batch of {}", samples, options.batch),
                  "give more, or a smaller batch");
  BatchSequence::Options order;
  order.samples = samples;
  order.batch = options.batch;
  order.last_batch = options.last_batch;
  order.shuffle = options.shuffle;
  order.seed = options.seed;
  auto state = std::make_unique<State>(std::move(learner), options, BatchSequence(order));
  state->loss = state->learner.output(options.loss);
  state->rate = state->learner.output("learning_rate");
  state->norm = state->learner.output("gradient_norm");
  if (!state->loss) return state->no_loss();
  const Shape& shape = state->learner.outputs()[*state->loss].shape;
  for (int d = 0; d < shape.rank(); ++d)
    if (shape[d] != 1 && shape[d] >= 0) return state->no_loss();  // an extent that is not declared may be 1
  return Trainer(std::move(state));
} catch (...) {
  return status_of_exception();
}

Status Trainer::test_with(const Session& net, std::shared_ptr<const Dataset> data) try {
  HEDDLE_TRY(FedNet tester, FedNet::create(net, std::move(data)));
  if (tester.data().samples() == 0) return {Code::invalid_argument, "there are no samples to test with", "give some"};
  std::vector<int64_t> all(static_cast<size_t>(tester.data().samples()));
  std::iota(all.begin(), all.end(), 0);
  state_->tested = std::move(all);
  state_->tester.emplace(std::move(tester));
  return {};
} catch (...) {
  return status_of_exception();
}

Status Trainer::prepare() try { return state_->prepare(); } catch (...) {
  return status_of_exception();
}

Status Trainer::run() try { return state_->run(); } catch (...) {
  return status_of_exception();
}

Result<TrainingStep> Trainer::step() try {
  TrainingStep made;
  HEDDLE_CHECK(state_->step(&made));
  return made;
} catch (...) {
  return status_of_exception();
}

Result<Evaluation> Trainer::evaluate() try {
  Evaluation made;
  HEDDLE_CHECK(state_->evaluate(&made));
  return made;
} catch (...) {
  return status_of_exception();
}

Status Trainer::save_checkpoint() try {
  HEDDLE_CHECK(state_->save_checkpoint());
  return state_->take(state_->writer.wait());
} catch (...) {
  return status_of_exception();
}

Result<CheckpointInfo> Trainer::resume(const std::string& path) try { return state_->resume(path); } catch (...) {
  return status_of_exception();
}

void Trainer::cancel() {
  state_->cancellation.cancel(state_->commits_late);
}

int64_t Trainer::steps() const {
  return state_->made;
}

int64_t Trainer::total_steps() const {
  return state_->total_steps();
}

std::shared_ptr<const PlanInfo> Trainer::plan() const {
  return state_->learner.plan();
}

}  // namespace heddle
