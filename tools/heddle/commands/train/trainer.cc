#include "commands/train/trainer.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "common/file_roles.h"
#include "common/written_net.h"
#include "tensors/compare.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

bool is_finite(const TensorView& view) {
  if (!is_float(view.dtype)) return true;
  for (int64_t i = 0; i < view.shape.element_count(); ++i)
    if (!std::isfinite(element(view, i))) return false;
  return true;
}

}  // namespace

bool Trainer::has_net(const std::string& name) const {
  const std::vector<std::string> names = nets_->names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status Trainer::open() {
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
  } else {  // the net only has a loss
    HEDDLE_CHECK(add_training(name));
  }
  HEDDLE_CHECK(check_files());
  SessionOptions options;
  HEDDLE_CHECK(o_.memory_limit.apply(options));
  options.seed = o_.seed;
  options.limits = limits_;
  o_.commit.apply(options);
  options.communicators = {CommunicatorOptions()};  // whatever their names, they are this process alone
  options.copies = Copies::automatic;               // nets with replicas have some by construction
  HEDDLE_TRY(Session all, runtime_->open(*nets_, options));
  HEDDLE_TRY(session_, all.net(name));
  HEDDLE_CHECK(open_test(all, name));
  outputs_ = session_->outputs();
  HEDDLE_CHECK(check_loss());
  return run_init(all);
}

// Opens the net that was named, else "test", where the file has it.
Status Trainer::open_test(const Session& all, const std::string& learning) {
  const std::string name = o_.test.empty() ? "test" : o_.test;
  if (name != learning && has_net(name)) {
    HEDDLE_TRY(test_, all.net(name));
  }
  if (!test_ && !(o_.test.empty() && o_.test_data.empty()))
    return {Code::unknown_name,
            fmt::format("{}: beside the net that learns there is no net {}", o_.test.empty() ? "--test-data" : "--test", quoted(name)),
            "name a net of the file with --test NAME"};
  if (!o_.test.empty() && o_.test_data.empty())
    return {Code::invalid_argument, fmt::format("--test: net {} has nothing to be tested with", quoted(name)),
            "give it data with --test-data NAME=FILE"};
  return {};
}

// Runs once, before the first step, and does not overwrite trained variables.
Status Trainer::run_init(const Session& all) {
  if (o_.init.empty()) return {};
  HEDDLE_TRY(Session init, all.net(o_.init), "while --init was looked up");
  if (const std::vector<PortInfo> inputs = init.inputs(); !inputs.empty())
    return {Code::missing_input, fmt::format("--init: net {} has input {}, and is given none", quoted(o_.init), quoted(inputs[0].name)),
            "name a net without inputs"};
  const Status fresh = session_->initialize(o_.seed);
  if (!fresh.ok())
    return {fresh.code(), fmt::format("--init: {}", fresh.diagnostic().message), "leave it out: what was trained would be lost"};
  const std::string what = fmt::format("while net {} was run for --init", quoted(o_.init));
  HEDDLE_TRY(Context context, init.prepare(), what);
  return context.run().during(what);
}

// Adds the training net for every batch, or, where operators need fixed extents, for this one.
Status Trainer::add_training(const std::string& name) {
  HEDDLE_TRY(TrainingOptions how, o_.training.options(o_.loss));
  Status made = nets_->add_training(*runtime_, name, how, name);
  if (made.code() != Code::shape_mismatch) return made;
  const Result<Session> as_it_is = runtime_->open(*nets_);
  if (!as_it_is.ok()) return made;
  HEDDLE_TRY(const Session learner, as_it_is->net(name));
  std::map<std::string, int64_t> symbols;
  for (const PortInfo& port : learner.inputs())
    if (!port.symbols.empty() && !port.symbols[0].empty()) symbols.emplace(port.symbols[0], batch_of(learner.inputs()));
  if (symbols.empty()) return made;
  how.symbols.assign(symbols.begin(), symbols.end());
  HEDDLE_CHECK(nets_->add_training(*runtime_, name, how, name));
  report_.say(fmt::format("net {} does not fit every batch: it learns with {} samples", quoted(name), batch_of(learner.inputs())));
  return {};
}

// Returns --batch, else the batch that the net declares.
int64_t Trainer::batch_of(const std::vector<PortInfo>& inputs) const {
  constexpr int64_t otherwise = 32;
  if (o_.batch > 0) return o_.batch;
  for (const PortInfo& port : inputs)
    if (port.shape.rank() > 0 && port.shape[0] > 0 && (port.symbols.empty() || port.symbols[0].empty())) return port.shape[0];
  return otherwise;
}

// Registers every file that is read and written, before the first is.
Status Trainer::check_files() const {
  FileRoles roles;
  for (const std::string& file : nets_->files()) roles.reads(file);
  for (const auto* const specs : {&o_.data, &o_.test_data})
    for (const std::string& file : TrainingData::files(*specs)) roles.reads(file);
  if (!o_.log.empty()) HEDDLE_CHECK(roles.writes("--log", o_.log));
  if (!o_.curve.empty()) HEDDLE_CHECK(roles.writes("--curve", o_.curve));
  if (!o_.output.empty()) HEDDLE_CHECK(writes_net(roles, o_.output));
  // Fails now if they can not be written at all, rather than after the training.
  if (!o_.curve.empty()) HEDDLE_CHECK(FileReplacement::create(o_.curve).status());
  return o_.output.empty() ? Status() : check_net_writable(o_.output);
}

// Checks the loss as far as the net declares it: only a run may show that it is one number.
Status Trainer::check_loss() const {
  const auto found = std::find_if(outputs_.begin(), outputs_.end(), [&](const PortInfo& port) { return port.name == o_.loss; });
  bool is_one = found != outputs_.end();
  for (int d = 0; is_one && d < found->shape.rank(); ++d) is_one = found->shape[d] == 1 || found->shape[d] < 0;
  return is_one ? Status() : no_loss();
}

Status Trainer::no_loss() const {
  return {Code::unknown_name, fmt::format("the net has no output {} that is one number", quoted(o_.loss)),
          "name its loss with --loss NAME"};
}

Status Trainer::read_data() {
  report_.step("reading data");
  batch_ = batch_of(session_->inputs());
  HEDDLE_TRY(data_, TrainingData::read("--data", o_.data, session_->inputs(), o_.samples, o_.seed, limits_));
  if (data_->samples() < batch_)
    return {Code::invalid_argument, fmt::format("there are {} samples, fewer than a batch of {}", data_->samples(), batch_),
            "give more, or a smaller --batch"};
  if (o_.test_data.empty()) return {};
  HEDDLE_TRY(test_data_, TrainingData::read("--test-data", o_.test_data, test_->inputs(), o_.samples, o_.seed + 1, limits_));
  if (test_data_->samples() == 0) return {Code::invalid_argument, "--test-data: there are no samples", "give some, or leave it out"};
  return {};
}

// Called when no check is left that may fail: it deletes the log of an earlier training.
Status Trainer::open_log() {
  if (o_.log.empty()) return {};
  // Opening a pipe without a reader would block.
  if (std::filesystem::is_fifo(o_.log) && !FileDescriptor(::open(o_.log.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC)).valid())
    return {Code::file_unwritable, fmt::format("{} is a pipe that nobody reads", quoted(o_.log)), "start its reader first"};
  log_.open(o_.log, std::ios::trunc);
  return log_ ? Status() : Status(Code::file_unwritable, fmt::format("could not open {}", quoted(o_.log)), "look at the folder");
}

// Warns before the first step: after hours it would be too late.
void Trainer::warn_of_no_output() const {
  if (!o_.output.empty() || o_.no_output) return;
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = Code::invalid_argument;
  warning.message = "nothing of what is learned will be kept, at the end or when it is interrupted: no file is named for it";
  warning.hint = "name one with -o NET.heddle, or say --no-output where that is meant";
  report_.diagnose(warning);
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
  const std::vector<TensorView>& batch = data_->batch(i, batch_, o_.seed);
  for (size_t k = 0; k < batch.size(); ++k) HEDDLE_CHECK(context_->bind_input(k, batch[k].data));
  const uint64_t before = ticks();
  if (Status status = context_->run(); !status.ok()) {
    const std::string sample = data_->sample_text(status.diagnostic().message);
    return std::move(status).during(
        fmt::format("in step {}, {}of samples {}", i + 1, sample.empty() ? "" : fmt::format("in {}, ", sample), data_->samples_text()));
  }
  const double ns = ticks_to_ns(ticks() - before);
  seconds_ += ns / 1e9;
  const std::optional<double> loss = output(o_.loss), rate = output("learning_rate"), norm = output("gradient_norm");
  if (!loss) return no_loss();
  losses_.add(i + 1, *loss);
  show(i + 1);
  if (!std::isfinite(*loss)) {
    const std::string data = data_->not_finite_text();
    return {Code::numerics, fmt::format("the loss of step {} is {}{}{}", i + 1, *loss, data.empty() ? "" : ": ", data),
            data.empty() ? "take a smaller learning rate, or clip gradients" : "mend the data"};
  }
  // A factor that is not finite would make the gradients not finite, and so all later weights.
  if (norm && !std::isfinite(*norm))
    return {Code::numerics, fmt::format("the norm of the gradients of step {} is {}", i + 1, *norm),
            "take a smaller learning rate, hold each number by --clip-value too, or compute in a wider dtype"};
  Json line = {
      {"step", i + 1}, {"loss", number(*loss)}, {"step_ns", static_cast<int64_t>(ns)}, {"learning_rate", rate ? number(*rate) : Json()}};
  if (norm) line["gradient_norm"] = number(*norm);
  return log(line);
}

// Shows progress on a terminal only, a few times a second.
void Trainer::show(int64_t step) {
  constexpr double between_ns = 2e8;
  const uint64_t now = ticks();
  if (ticks_to_ns(now - shown_) < between_ns) return;
  shown_ = now;
  report_.step(fmt::format("step {} of {}: loss {:.4g}", step, o_.steps, losses_.last().loss));
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

// Computes the means of the test net's numbers over all samples.
Status Trainer::evaluate(int64_t step) {
  const std::vector<PortInfo> ports = test_->outputs();
  tested_.clear();
  for (int64_t first = 0; first < test_data_->samples(); first += batch_) {
    const int64_t count = std::min(batch_, test_data_->samples() - first);
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
    if (name == o_.loss) test_losses_.add(step, value);
  }
  report_.say(fmt::format("step {}: loss {:.4g}{}", step, losses_.last().loss, text));
  return log(line);
}

Status Trainer::run() {
  report_.step("compiling");
  HEDDLE_TRY(context_, session_->prepare_on(memory_, data_->batch(0, batch_, o_.seed)));
  note_host_steps();
  HEDDLE_CHECK(open_log());
  warn_of_no_output();
  if (!o_.output.empty()) {  // variables that are not saved are not checked
    HEDDLE_TRY(infinite_at_first_, not_finite());
  }
  // With early updates a step that ends half-way leaves the variables torn: signals are handled only between steps.
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

// Says which operators run on the host because their device has no kernel for them.
void Trainer::note_host_steps() {
  std::map<std::string, int> types;
  int count = 0;
  for (const Diagnostic& said : context_->plan()->warnings)
    if (said.code == Code::no_kernel) ++types[said.type], ++count;
  if (count == 0) return;
  std::vector<std::string> texts;
  for (const auto& [type, number] : types) texts.push_back(number > 1 ? fmt::format("{} x{}", type, number) : type);
  Status note(Code::no_kernel,
              fmt::format("{} operators run on the host for want of kernels on their devices: {}", count, join(texts, ", ")),
              "see heddle plan");
  note.diagnostic().severity = Severity::note;
  report_.diagnose(note.diagnostic());
}

Status Trainer::save() {
  Status saved = o_.output.empty() ? Status() : save_nets_with_variables();
  Status drawn = o_.curve.empty() ? Status() : write_loss_curve(o_.curve, o_.file, losses_, test_losses_);
  return saved.ok() ? drawn : saved;
}

// Returns the variables with a number that is not finite.
Result<std::set<std::string>> Trainer::not_finite() const {
  std::set<std::string> names;
  for (const std::string& name : session_->variables()) {
    HEDDLE_TRY(const Tensor value, session_->read_variable(name));
    if (!is_finite(value.view())) names.insert(name);
  }
  return names;
}

Status Trainer::save_nets_with_variables() {
  HEDDLE_TRY(const std::set<std::string> infinite, not_finite());
  for (const std::string& name : infinite)
    if (infinite_at_first_.count(name) == 0)
      return {Code::numerics,
              fmt::format("variable {} holds what is no number, after {} steps: nothing is saved", quoted(name), losses_.count()),
              "take a smaller learning rate, or clip gradients"};
  HEDDLE_CHECK(nets_->take_variables(*session_));
  HEDDLE_CHECK(nets_->write(o_.output));
  report_.say(fmt::format("{}: {} nets, {} variables", quoted(o_.output), nets_->names().size(), session_->variables().size()));
  return {};
}

void Trainer::describe() {
  Json test;
  for (const auto& [name, value] : tested_) test[name] = number(value);
  report_.json["train"] = {{"steps", losses_.count()},
                           {"batch", batch_},
                           {"samples", data_ ? Json(data_->samples()) : Json()},
                           {"first_loss", losses_.empty() ? Json() : number(losses_.first().loss)},
                           {"last_loss", losses_.empty() ? Json() : number(losses_.last().loss)},
                           {"seconds", seconds_},
                           {"test", test}};
}

}  // namespace heddle::tool
