#include "heddle/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <span>

#include "base/checksum.h"
#include "base/element.h"
#include "base/exceptions.h"
#include "base/numerics_check.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "net/print.h"
#include "session/plain_values.h"
#include "session/session_impl.h"
#include "train/trainer_state.h"

namespace heddle {
namespace {

constexpr int64_t max_batch = INT32_MAX, max_ahead = 1024;

int64_t ns_since(uint64_t begin) {
  return static_cast<int64_t>(ticks_to_ns(ticks() - begin));
}

Status check(const TrainerOptions& options) {
  struct Range {
    const char* name;
    int64_t number, least, most;
  };
  const Range ranges[] = {{"steps", options.steps, 0, INT64_MAX},
                          {"epochs", options.epochs, 0, INT64_MAX},
                          {"batch", options.batch, 1, max_batch},
                          {"evaluate_every", options.evaluate_every, 0, INT64_MAX},
                          {"checkpoints.every", options.checkpoints.every, 0, INT64_MAX},
                          {"checkpoints.keep", options.checkpoints.keep, 0, INT64_MAX},
                          {"reader_threads", options.reader_threads, 0, max_threads},
                          {"read_ahead", options.read_ahead, 0, max_ahead},
                          {"max_bad_samples", options.max_bad_samples, 0, INT64_MAX},
                          {"best.patience", options.best.patience, 0, INT64_MAX}};
  for (const auto& [name, number, least, most] : ranges)
    if (number < least || number > most)
      return {Code::invalid_argument, fmt::format("{} is {}", name, number), fmt::format("give a number from {} to {}", least, most)};
  return {};
}

std::set<std::string> updated_variables(const Net& net) {
  std::set<std::string> names;
  for (const Variable& variable : net.variables)
    if (variable.first != variable.last) names.insert(variable.name);
  return names;
}

// Returns the checksum of the net as text, in hexadecimal digits.
std::string checksum_of_text(const Net& net) {
  const std::string text = print(net);
  return hex(checksum(std::as_bytes(std::span(text.data(), text.size()))));
}

// Returns the output's number after a run; none: there is no such output, or it is not one number.
std::optional<double> number(const Context& context, const std::optional<size_t>& output) {
  if (!output) return std::nullopt;
  const TensorView view = context.output(*output);
  return view.shape.element_count() == 1 && view.data ? std::optional<double>(element(view, 0)) : std::nullopt;
}

}  // namespace

Trainer::State::State(FedNet net, const TrainerOptions& asked, const BatchSequence& of_batches, std::unique_ptr<RankExchange> of_ranks)
    : learner(std::move(net)),
      options(asked),
      order(of_batches),
      batches_of_epoch(order.batches_of_epoch()),
      reader(learner.shared_data(), order, asked.reader_threads, asked.read_ahead, total_steps(), asked.max_bad_samples),
      writer(Internals::of(learner.session()).variables, asked.checkpoints, updated_variables(Internals::of(learner.session()).net)),
      commits_late(Internals::of(learner.session()).options.commit_late),
      data_identity(learner.data().identity()),
      net_checksum(checksum_of_text(Internals::of(learner.session()).net)),
      ranks(std::move(of_ranks)) {}

Status Trainer::State::no_loss() const {
  return {Code::unknown_name,
          fmt::format("net {} has no output {} that is one number", quoted(learner.session().name()), quoted(options.loss)),
          "name its loss"};
}

int64_t Trainer::State::total_steps() const {
  int64_t by_epochs = -1;
  if (options.epochs > 0 && __builtin_mul_overflow(options.epochs, batches_of_epoch, &by_epochs)) by_epochs = INT64_MAX;
  if (by_epochs < 0 || options.steps == 0) return options.steps > 0 ? options.steps : by_epochs;
  return std::min(options.steps, by_epochs);
}

bool Trainer::State::is_over() const {
  const int64_t total = total_steps();
  return is_stopped_early() || (total >= 0 && made >= total);
}

Status Trainer::State::read(int64_t step) {
  HEDDLE_TRY(const SampleBatch* const read, reader.take(step, [this] { return cancellation.take(); }),
             fmt::format("while the samples of step {} were read", step + 1));
  if (!read->bad.empty())
    HEDDLE_CHECK(take_bad(*read, learner, bad_of_training, fmt::format("while the samples of step {} were read", step + 1)));
  return learner.feed(*read);
}

Status Trainer::State::prepare() {
  writer.prepare();
  HEDDLE_CHECK(join());
  HEDDLE_CHECK(read(made));
  return learner.prepare(memory).status();
}

Status Trainer::State::step(TrainingStep* of) {
  HEDDLE_CHECK(cancellation.take());
  HEDDLE_CHECK(join());
  of->step = made + 1;
  const uint64_t begin = ticks();
  HEDDLE_CHECK(read(made));
  of->epoch = made / batches_of_epoch + 1;
  of->samples = ranks ? order.samples_of(made) : learner.samples();
  of->read_ns = ns_since(begin);
  HEDDLE_TRY(Context* const context, learner.prepare(memory));
  HEDDLE_CHECK(await_ranks());
  RunOptions run;
  run.seed = options.seed;
  run.finite_outputs = finite_outputs();
  const uint64_t before = ticks();
  Status status = cancellation.run(*context, run);
  if (status.code() == Code::cancelled) return status;
  if (status.code() == Code::numerics) return explain(*context, std::move(status));
  if (!status.ok()) return learner.with_samples(std::move(status), fmt::format("in step {}", of->step));
  of->run_ns = ns_since(before);
  const std::optional<double> value = number(*context, loss);
  if (!value) return no_loss();
  of->loss = *value;
  of->learning_rate = number(*context, rate);
  of->gradient_norm = number(*context, norm);
  made = of->step;
  last_loss = of->loss;
  Status finite = check_finite(*of);
  if (finite.ok()) {  // else its variables are worth nothing
    evaluation_due = is_due(options.evaluate_every);
    saving_due = has_folder() && is_due(options.checkpoints.every > 0 ? options.checkpoints.every : options.evaluate_every);
  }
  if (options.on_step) HEDDLE_CHECK(options.on_step(*of));
  return finite;
}

Status Trainer::State::check_finite(const TrainingStep& of) const {
  if (!std::isfinite(of.loss)) return not_finite(of.step, "loss", of.loss);
  // A factor that is not finite makes the gradients not finite, and so all later weights.
  if (of.gradient_norm && !std::isfinite(*of.gradient_norm)) return not_finite(of.step, "norm of the gradients", *of.gradient_norm);
  return {};
}

Status Trainer::State::not_finite(int64_t step, const char* what, double value) const {
  const std::string data = learner.not_finite_text();
  return {Code::numerics, fmt::format("the {} of step {} is {}{}{}", what, step, value, data.empty() ? "" : ": ", data),
          data.empty() ? "take a smaller learning rate, limit each number of the gradients, or compute in a wider dtype" : "mend the data"};
}

// Returns the outputs that must be finite if a step is to update variables, as RunOptions has them.
uint64_t Trainer::State::finite_outputs() const {
  uint64_t bits = 0;
  for (const std::optional<size_t>& output : {loss, norm})
    if (output && *output < 64) bits |= uint64_t{1} << *output;
  return bits;
}

// Returns the name of a variable with a number that is not finite; empty: all are finite.
std::string Trainer::State::variable_not_finite() const {
  for (const std::string& name : learner.session().variables()) {
    const Result<Tensor> value = learner.session().read_variable(name);
    if (value.ok() && first_not_finite(value->view()) >= 0) return name;
  }
  return {};
}

// Runs the step once more, which updates nothing again, to find the operator that makes the first number that is not finite.
Status Trainer::State::explain(Context& context, Status found) {
  TrainingStep of;
  of.step = made + 1;
  of.loss = number(context, loss).value_or(0);
  of.gradient_norm = number(context, norm);
  Status said = check_finite(of);
  if (said.ok()) return found;                                   // a number of the net that is neither
  if (!learner.not_finite_text().empty() || ranks) return said;  // another rank may not run it once more
  NumericsCheck check;
  const std::shared_ptr<const PlanInfo> plan = context.plan();
  const StepObserver look = [&](StepView& view) { return check.look(*plan, view); };
  RunOptions run;
  run.seed = options.seed;
  run.finite_outputs = finite_outputs();
  run.observer = &look;
  const Status again = plan ? cancellation.run(context, run) : Status();
  const Diagnostic& first = again.diagnostic();
  if (again.code() == Code::numerics && first.message != found.diagnostic().message)
    said.diagnostic().message +=
        fmt::format(": {} ({}) is the first operator that makes such a number, {}", quoted(first.node), first.type, first.message);
  else if (const std::string variable = variable_not_finite(); !variable.empty())
    said.diagnostic().message += fmt::format(": variable {} is not finite since the update of an earlier step", quoted(variable));
  return said;
}

Status Trainer::State::run() {
  writer.prepare();
  HEDDLE_CHECK(join());
  for (;;) {
    if (evaluation_due && tester) {
      Evaluation of;
      HEDDLE_CHECK(evaluate(&of));
    }
    if (saving_due) HEDDLE_CHECK(save_checkpoint());
    if (is_over()) return take(writer.wait());
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
  HEDDLE_TRY(Metrics metrics, Metrics::parse(options.metrics));
  HEDDLE_TRY(FedNet learner, FedNet::create(net, std::move(data), options.weights));
  const int64_t samples = learner.data().samples();
  if (options.last_batch == LastBatch::pad && !learner.has_weights())
    return Status(Code::invalid_argument,
                  fmt::format("net {} has no input that takes the weights of samples, and would count those that pad", quoted(net.name())),
                  "name an input of it in TrainerOptions::weights, or keep or drop the last batch");
  if (!options.weights.empty() && !learner.has_weights())
    return Status(Code::unknown_name, fmt::format("net {} has no input {}", quoted(net.name()), quoted(options.weights)),
                  "name one of its inputs");
  if (samples < options.batch && (options.last_batch == LastBatch::drop || samples == 0))
    return Status(Code::invalid_argument, fmt::format("there are {} samples, fewer than a batch of {}", samples, options.batch),
                  "give more, or a smaller batch");
  BatchSequence::Options order;
  order.samples = samples;
  order.batch = options.batch;
  order.last_batch = options.last_batch;
  order.shuffle = options.shuffle;
  order.seed = options.seed;
  HEDDLE_TRY(auto ranks, RankExchange::create(net, "training"));
  TrainerOptions own = options;
  if (ranks) {
    order.rank = ranks->rank();
    order.ranks = ranks->ranks();
    if (!ranks->is_first()) own.checkpoints = {};
    Internals::of(net).communicators->fail_if_broken();
  }
  auto state = std::make_unique<State>(std::move(learner), own, BatchSequence(order), std::move(ranks));
  HEDDLE_CHECK(state->check_parts());
  state->metrics = std::move(metrics);
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

// Calls a function that all ranks call: the others are told of its error, whatever it is.
template <class Act>
Status Trainer::State::with_ranks(const Act& act) {
  Status status;
  try {
    status = act();
  } catch (...) {
    status = status_of_exception();
  }
  return ended(std::move(status));
}

Status Trainer::prepare() {
  return state_->with_ranks([&] { return state_->prepare(); });
}

Status Trainer::run() {
  return state_->with_ranks([&] { return state_->run(); });
}

Result<TrainingStep> Trainer::step() {
  TrainingStep made;
  HEDDLE_CHECK(state_->with_ranks([&] { return state_->step(&made); }));
  return made;
}

Result<Evaluation> Trainer::evaluate() {
  Evaluation made;
  HEDDLE_CHECK(state_->with_ranks([&] { return state_->evaluate(&made); }));
  return made;
}

Status Trainer::wait_for_ranks() {
  return state_->with_ranks([&] { return state_->wait_for_ranks(); });
}

Status Trainer::save_checkpoint() try {
  if (!state_->writes_files()) return {};
  HEDDLE_CHECK(state_->save_checkpoint());
  return state_->take(state_->writer.wait());
} catch (...) {
  return status_of_exception();
}

Result<CheckpointInfo> Trainer::resume(const std::string& path) try { return state_->resume(path); } catch (...) {
  return status_of_exception();
}

Status Trainer::restore_best() try { return state_->restore_best(); } catch (...) {
  return status_of_exception();
}

void Trainer::cancel() {
  state_->cancellation.cancel(state_->commits_late);
}

int64_t Trainer::bad_samples() const {
  return state_->bad_samples;
}

int64_t Trainer::steps() const {
  return state_->made;
}

std::optional<std::pair<int64_t, double>> Trainer::best() const {
  if (state_->best_step < 0) return std::nullopt;
  return std::pair(state_->best_step, state_->best_mean);
}

bool Trainer::is_stopped_early() const {
  return state_->is_stopped_early();
}

std::string Trainer::net_checksum() const {
  return or_empty("no memory for the checksum of a net", [&] { return state_->net_checksum; });
}

int64_t Trainer::total_steps() const {
  return state_->total_steps();
}

std::shared_ptr<const PlanInfo> Trainer::plan() const {
  return state_->learner.plan();
}

}  // namespace heddle
