// train: a net learns from data.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "commands/commands.h"
#include "commands/train/loss_curve.h"
#include "commands/train/training_data.h"
#include "common/commit_option.h"
#include "common/file_roles.h"
#include "common/interrupt.h"
#include "common/limit_options.h"
#include "common/training_options.h"
#include "common/written_net.h"
#include "heddle/training.h"
#include "tensors/compare.h"
#include "tensors/inputs.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

struct TrainArguments {
  std::string file, net, test = "test", loss = "loss", log, curve, output;
  std::vector<std::string> data, test_data;
  TrainingFlags training;
  LimitOptions limits;
  CommitOption commit;
  int64_t steps = 0, batch = 32, eval_every = 0, samples = 1024;
  uint64_t seed = 0;
  std::string checkpoint_dir, precision, devices, rendezvous;
  int64_t accumulate = 1;
  bool resume = false;
};

// Options of the command line's contract that come with checkpoints, mixed precision and many devices.
Status check_not_there(const TrainArguments& o) {
  const char* option = !o.checkpoint_dir.empty() ? "--checkpoint-dir"
                       : o.resume                ? "--resume"
                       : o.accumulate != 1       ? "--accumulate"
                       : !o.precision.empty()    ? "--precision"
                       : !o.devices.empty()      ? "--devices"
                       : !o.rendezvous.empty()   ? "--rendezvous"
                                                 : nullptr;
  if (!option) return {};
  return {Code::not_implemented, fmt::format("{} does not work yet", option), "leave it out"};
}

bool is_finite(const TensorView& view) {
  if (!is_float(view.dtype)) return true;
  for (int64_t i = 0; i < view.shape.element_count(); ++i)
    if (!std::isfinite(element(view, i))) return false;
  return true;
}

// `heddle train`, in the order of its public functions.
class Trainer {
 public:
  Trainer(const TrainArguments& options, Report& report) : o_(options), report_(report) {}
  Status open();
  Status read_data();
  Status open_log();
  Status run();
  bool has_learned() const { return !losses_.empty(); }
  // What was learned, and the picture. Errors also: numerics, naming a variable that is not finite.
  Status save();
  void describe();

 private:
  bool has_net(const std::string& name) const;
  Status check_files() const;
  Status check_loss() const;
  Status save_nets_with_variables();
  Status step(int64_t i);
  Status evaluate(int64_t step);
  // The test net's outputs of these samples, until the next run.
  Result<const Context*> test(int64_t first, int64_t count);
  Status log(const Json& line);
  std::optional<double> output(const std::string& name) const;

  const TrainArguments& o_;
  Report& report_;
  Limits limits_;
  std::optional<Nets> nets_;  // as they are saved
  std::optional<Runtime> runtime_;
  std::optional<Session> session_, test_;
  std::optional<TrainingData> data_, test_data_;
  const SharedMemory memory_;  // of learning and testing, which take turns
  std::optional<Context> context_;
  std::map<int64_t, Context> test_contexts_;       // by number of samples
  std::optional<InterruptibleRun> interruptible_;  // until everything is saved
  std::vector<PortInfo> outputs_;
  std::ofstream log_;
  Losses losses_, test_losses_;
  std::vector<std::pair<std::string, double>> tested_;  // of the last evaluation
  double seconds_ = 0;
};

bool Trainer::has_net(const std::string& name) const {
  const std::vector<std::string> names = nets_->names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status Trainer::open() {
  HEDDLE_CHECK(check_not_there(o_));
  HEDDLE_TRY(limits_, o_.limits.limits());
  report_.step(fmt::format("loading {}", o_.file));
  HEDDLE_TRY(nets_, Nets::read(o_.file, limits_));
  const std::vector<std::string> names = nets_->names();
  const std::string name = !o_.net.empty() ? o_.net : names.size() == 1 ? names[0] : "train";
  if (!has_net(name))
    return {Code::unknown_name, fmt::format("{} has no net {}", quoted(o_.file), quoted(name)), "choose one of its nets with --net NAME"};
  HEDDLE_TRY(runtime_, make_runtime(report_.common));
  HEDDLE_TRY(const bool learns, nets_->learns(name));
  if (learns) {
    HEDDLE_CHECK(o_.training.check_not_given(fmt::format("net {} says how it learns", quoted(name))));
  } else {  // it only has a loss
    HEDDLE_TRY(const TrainingOptions how, o_.training.options(o_.loss));
    HEDDLE_CHECK(nets_->add_training(*runtime_, name, how, name));
  }
  HEDDLE_CHECK(check_files());
  SessionOptions options;
  options.seed = o_.seed;
  options.limits = limits_;
  o_.commit.apply(options);
  HEDDLE_TRY(Session all, runtime_->open(*nets_, options));
  HEDDLE_TRY(session_, all.net(name));
  if (has_net(o_.test) && o_.test != name) {
    HEDDLE_TRY(test_, all.net(o_.test));
  }
  outputs_ = session_->outputs();
  return check_loss();
}

// Names every file that is read and written, before the first is.
Status Trainer::check_files() const {
  FileRoles roles;
  for (const std::string& file : nets_->files()) roles.reads(file);
  for (const auto* const specs : {&o_.data, &o_.test_data})
    for (const std::string& file : TrainingData::files(*specs)) roles.reads(file);
  if (!o_.log.empty()) HEDDLE_CHECK(roles.writes("--log", o_.log));
  if (!o_.curve.empty()) HEDDLE_CHECK(roles.writes("--curve", o_.curve));
  if (!o_.output.empty()) HEDDLE_CHECK(writes_net(roles, o_.output));
  // Whether they can be written at all is better known before than after.
  if (!o_.curve.empty()) HEDDLE_CHECK(FileReplacement::create(o_.curve).status());
  return o_.output.empty() ? Status() : check_net_writable(o_.output);
}

// As far as the net says it: that it is one number a run may show alone.
Status Trainer::check_loss() const {
  const auto found = std::find_if(outputs_.begin(), outputs_.end(), [&](const PortInfo& port) { return port.name == o_.loss; });
  bool is_one = found != outputs_.end();
  for (int d = 0; is_one && d < found->shape.rank(); ++d) is_one = found->shape[d] == 1 || found->shape[d] < 0;
  if (is_one) return {};
  return {Code::unknown_name, fmt::format("the net has no output {} that is one number", quoted(o_.loss)),
          "name its loss with --loss NAME"};
}

Status Trainer::read_data() {
  report_.step("reading data");
  HEDDLE_TRY(data_, TrainingData::read("--data", o_.data, session_->inputs(), o_.samples, o_.seed, limits_));
  if (data_->samples() < o_.batch)
    return {Code::invalid_argument, fmt::format("there are {} samples, fewer than a batch of {}", data_->samples(), o_.batch),
            "give more, or a smaller --batch"};
  if (o_.test_data.empty()) return {};
  if (!test_)
    return {Code::unknown_name, fmt::format("--test-data: there is no net {}", quoted(o_.test)), "name a net of the file with --test NAME"};
  HEDDLE_TRY(test_data_, TrainingData::read("--test-data", o_.test_data, test_->inputs(), o_.samples, o_.seed + 1, limits_));
  if (test_data_->samples() == 0) return {Code::invalid_argument, "--test-data: there are no samples", "give some, or leave it out"};
  return {};
}

Status Trainer::open_log() {
  if (o_.log.empty()) return {};
  log_.open(o_.log, std::ios::trunc);
  return log_ ? Status() : Status(Code::file_unwritable, fmt::format("could not open {}", quoted(o_.log)), "look at the folder");
}

std::optional<double> Trainer::output(const std::string& name) const {
  for (size_t i = 0; i < outputs_.size(); ++i)
    if (outputs_[i].name == name && context_->output(i).shape.element_count() == 1) return element(context_->output(i), 0);
  return std::nullopt;
}

Status Trainer::log(const Json& line) {
  if (o_.log.empty()) return {};
  log_ << line.dump() << '\n' << std::flush;
  return log_ ? Status() : Status(Code::file_unwritable, fmt::format("could not write {}", quoted(o_.log)), "look at the disk");
}

Status Trainer::step(int64_t i) {
  const std::vector<TensorView>& batch = data_->batch(i, o_.batch, o_.seed);
  for (size_t k = 0; k < batch.size(); ++k) HEDDLE_CHECK(context_->bind_input(k, batch[k].data));
  const uint64_t before = ticks();
  HEDDLE_CHECK(context_->run(), fmt::format("in step {}", i + 1));
  const double ns = ticks_to_ns(ticks() - before);
  seconds_ += ns / 1e9;
  const std::optional<double> loss = output(o_.loss), rate = output("learning_rate");
  if (!loss)
    return {Code::unknown_name, fmt::format("the net has no output {} that is one number", quoted(o_.loss)),
            "name its loss with --loss NAME"};
  losses_.add(i + 1, *loss);
  if (!std::isfinite(*loss))
    return {Code::numerics, fmt::format("the loss of step {} is {}", i + 1, *loss), "take a smaller learning rate, or clip gradients"};
  return log(
      {{"step", i + 1}, {"loss", number(*loss)}, {"step_ns", static_cast<int64_t>(ns)}, {"learning_rate", rate ? number(*rate) : Json()}});
}

Result<const Context*> Trainer::test(int64_t first, int64_t count) {
  const std::vector<TensorView>& samples = test_data_->slice(first, count);
  auto found = test_contexts_.find(count);
  if (found == test_contexts_.end()) {
    HEDDLE_TRY(Context made, test_->prepare_on(memory_, samples));
    found = test_contexts_.emplace(count, std::move(made)).first;
  }
  Context& context = found->second;
  for (size_t i = 0; i < samples.size(); ++i) HEDDLE_CHECK(context.bind_input(i, samples[i].data));
  HEDDLE_CHECK(context.run());
  return &context;
}

// The means of the test net's numbers over all samples.
Status Trainer::evaluate(int64_t step) {
  const std::vector<PortInfo> ports = test_->outputs();
  tested_.clear();
  for (int64_t first = 0; first < test_data_->samples(); first += o_.batch) {
    const int64_t count = std::min(o_.batch, test_data_->samples() - first);
    HEDDLE_TRY(const Context* const context, test(first, count), "while testing");
    HEDDLE_CHECK(interruption());
    size_t at = 0;
    for (size_t i = 0; i < ports.size(); ++i) {
      const TensorView view = context->output(i);
      if (view.shape.rank() != 0) continue;
      if (first == 0) tested_.emplace_back(ports[i].name, 0);
      tested_[at++].second += element(view, 0) * static_cast<double>(count) / static_cast<double>(test_data_->samples());
    }
  }
  Json line = {{"step", step}};
  std::string text;
  for (const auto& [name, value] : tested_) {
    line["test_" + name] = number(value);
    text += fmt::format(", test {} {:.4g}", printable(name), value);
    if (name == "loss") test_losses_.add(step, value);
  }
  report_.say(fmt::format("step {}: loss {:.4g}{}", step, losses_.last().loss, text));
  return log(line);
}

Status Trainer::run() {
  report_.step("compiling");
  HEDDLE_TRY(context_, session_->prepare_on(memory_, data_->batch(0, o_.batch, o_.seed)));
  // With early updates a step that ends half-way leaves variables that are of no use: a signal is heard between steps alone.
  interruptible_.emplace(o_.commit.is_late() ? &*context_ : nullptr);
  const int64_t between = o_.eval_every > 0 ? o_.eval_every : std::max<int64_t>(1, o_.steps / 10);
  for (int64_t i = 0; i < o_.steps; ++i) {
    HEDDLE_CHECK(interruption());
    HEDDLE_CHECK(step(i));
    if ((i + 1) % between != 0 && i + 1 != o_.steps) continue;
    if (test_data_)
      HEDDLE_CHECK(evaluate(i + 1));
    else
      report_.say(fmt::format("step {}: loss {:.4g}", i + 1, losses_.last().loss));
  }
  return {};
}

Status Trainer::save() {
  Status saved = o_.output.empty() ? Status() : save_nets_with_variables();
  Status drawn = o_.curve.empty() ? Status() : write_loss_curve(o_.curve, o_.file, losses_, test_losses_);
  return saved.ok() ? drawn : saved;
}

Status Trainer::save_nets_with_variables() {
  const std::vector<std::string> variables = session_->variables();
  for (const std::string& name : variables) {
    HEDDLE_TRY(const Tensor value, session_->read_variable(name));
    if (!is_finite(value.view()))
      return {Code::numerics,
              fmt::format("variable {} holds what is no number, after {} steps: nothing is saved", quoted(name), losses_.count()),
              "take a smaller learning rate, or clip gradients"};
  }
  HEDDLE_CHECK(nets_->take_variables(*session_));
  HEDDLE_CHECK(nets_->write(o_.output));
  report_.say(fmt::format("{}: {} nets, {} variables", quoted(o_.output), nets_->names().size(), variables.size()));
  return {};
}

void Trainer::describe() {
  Json test;
  for (const auto& [name, value] : tested_) test[name] = number(value);
  report_.json["train"] = {{"steps", losses_.count()},
                           {"batch", o_.batch},
                           {"samples", data_ ? Json(data_->samples()) : Json()},
                           {"first_loss", losses_.empty() ? Json() : number(losses_.first().loss)},
                           {"last_loss", losses_.empty() ? Json() : number(losses_.last().loss)},
                           {"seconds", seconds_},
                           {"test", test}};
}

Status train(const TrainArguments& o, Report& report) {
  Trainer trainer(o, report);
  HEDDLE_CHECK(trainer.open());
  HEDDLE_CHECK(trainer.read_data());
  HEDDLE_CHECK(trainer.open_log());
  Status status = trainer.run();
  trainer.describe();
  // What was learned until then is worth keeping, unless it is no number.
  if (!status.ok() && (status.code() == Code::numerics || !trainer.has_learned())) return status;
  const Status saved = trainer.save();
  if (!status.ok() && !saved.ok()) report.diagnose(saved.diagnostic());
  return status.ok() ? saved : status;
}

Run declare_train(CLI::App& app) {
  auto o = std::make_shared<TrainArguments>();
  app.add_option("net", o->file, "a file with a net that has a loss, and perhaps one to test it")->required()->type_name("NET");
  app.add_option("--net", o->net, "which net of the file learns: the only one, or \"train\"")->type_name("NAME");
  app.add_option("--test", o->test, "the net that it is tested with")->type_name("NAME")->capture_default_str();
  app.add_option("--loss", o->loss, "the value that is to become small")->type_name("NAME")->capture_default_str();
  app.add_option("--steps", o->steps, "how often the variables are updated")
      ->required()
      ->check(CLI::PositiveNumber)
      ->check(whole_number(INT64_MAX));
  app.add_option("--batch", o->batch, "samples of a step: the symbol N")
      ->check(CLI::PositiveNumber)
      ->check(whole_number(INT64_MAX))
      ->capture_default_str();
  app.add_option("--data", o->data, "an array for each input, samples along its first axis; or \"synthetic\"")
      ->required()
      ->type_name("NAME=FILE");
  app.add_option("--samples", o->samples, "of synthetic data")
      ->check(CLI::PositiveNumber)
      ->check(whole_number(INT64_MAX))
      ->capture_default_str();
  app.add_option("--test-data", o->test_data, "the same for the test net")->type_name("NAME=FILE");
  app.add_option("--eval-every", o->eval_every, "steps between tests; else ten times")
      ->type_name("N")
      ->check(CLI::PositiveNumber)
      ->check(whole_number(INT64_MAX));
  app.add_option("--seed", o->seed, "of the order of samples, random operators and first contents")->check(whole_number());
  app.add_option("--log", o->log, "a line of JSON for each step")->type_name("FILE.jsonl");
  app.add_option("--curve", o->curve, "the losses as a picture")->type_name("FILE.svg");
  app.add_option("-o,--output", o->output, "the file with what was learned")->type_name("NET.heddle");
  o->training.declare(app);
  o->limits.declare(app);
  o->commit.declare(app);
  app.add_option("--checkpoint-dir", o->checkpoint_dir, "not there yet")->type_name("DIR");
  app.add_flag("--resume", o->resume, "not there yet");
  app.add_option("--accumulate", o->accumulate, "not there yet")->type_name("K");
  app.add_option("--precision", o->precision, "not there yet")->type_name("DTYPE");
  app.add_option("--devices", o->devices, "not there yet")->type_name("D,D");
  app.add_option("--rendezvous", o->rendezvous, "not there yet")->type_name("WHERE");
  return [o](Report& report) { return report.finish_with(train(*o, report)); };
}

}  // namespace

const Command train_command = {
    "train",
    "a net learns from data",
    "heddle train learning.heddle --steps 1000 --data image=images.npy --data labels=labels.npy -o trained.heddle",
    declare_train,
    {{"train", {"train"}}}};

}  // namespace heddle::tool
