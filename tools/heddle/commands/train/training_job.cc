#include "commands/train/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/element.h"
#include "base/file.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "common/file_roles.h"
#include "common/written_net.h"

namespace heddle::tool {
namespace {

// "2 h 5 min", "12 s"
std::string duration_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds + 0.5);
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  return whole >= 60 ? fmt::format("{} min {} s", whole / 60, whole % 60) : fmt::format("{} s", whole);
}

}  // namespace

bool TrainingJob::has_net(const std::string& name) const {
  const std::vector<std::string> names = nets_->names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status TrainingJob::open() {
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
  HEDDLE_CHECK(look_for_checkpoint());
  HEDDLE_CHECK(check_files());
  SessionOptions options;
  HEDDLE_CHECK(o_.memory_limit.apply(options));
  options.seed = seed_;
  options.limits = limits_;
  o_.commit.apply(options);
  options.communicators = {CommunicatorOptions()};  // whatever their names, they are this process alone
  options.copies = Copies::automatic;               // nets with replicas have some by construction
  HEDDLE_TRY(Session all, runtime_->open(*nets_, options));
  HEDDLE_TRY(session_, all.net(name));
  HEDDLE_CHECK(open_test(all, name));
  return run_init(all);
}

// Finds what --resume continues from. A folder that has checkpoints is taken for nothing else.
Status TrainingJob::look_for_checkpoint() {
  seed_ = o_.seed.value_or(0);
  if (o_.checkpoint_dir.empty()) return {};
  std::error_code error;
  std::filesystem::create_directory(o_.checkpoint_dir, error);
  if (error)
    return {Code::file_unwritable, fmt::format("--checkpoint-dir: could not make {}: {}", quoted(o_.checkpoint_dir), error.message()),
            "name a folder, or a new one in a folder that exists"};
  HEDDLE_TRY(CheckpointList found, list_checkpoints(o_.checkpoint_dir));
  if (!o_.resume && !(found.complete.empty() && found.damaged.empty()))
    return {Code::invalid_argument,
            fmt::format("--checkpoint-dir: {} has {} checkpoints of an earlier training", quoted(o_.checkpoint_dir),
                        found.complete.size() + found.damaged.size()),
            "continue that training with --resume, or name another folder"};
  for (Diagnostic damaged : found.damaged) {
    damaged.severity = Severity::warning;
    report_.diagnose(damaged);
  }
  if (!o_.resume) return {};
  if (found.complete.empty() && !found.damaged.empty())
    return {Code::file_corrupt, fmt::format("--resume: no checkpoint of {} can be read", quoted(o_.checkpoint_dir)),
            "name another folder to begin anew: these files stay as they are"};
  if (found.complete.empty()) {
    report_.say(fmt::format("{} has no checkpoint yet: the training begins", quoted(o_.checkpoint_dir)));
    return {};
  }
  candidates_ = std::move(found.complete);
  from_ = candidates_[0];
  seed_ = o_.seed.value_or(from_->seed);
  return {};
}

Result<BestOptions> TrainingJob::best() const {
  BestOptions made;
  made.patience = o_.patience;
  if (o_.best.empty()) return made;
  const size_t at = o_.best.rfind('=');
  const std::string which = at == std::string::npos ? "" : o_.best.substr(at + 1);
  if ((which != "min" && which != "max") || at == 0)
    return Status(Code::invalid_argument, fmt::format("--best {}: it is no name with min or max", quoted(o_.best)),
                  "write it like accuracy=max or loss=min");
  if (o_.samples.test_data.empty())
    return Status(Code::invalid_argument, "--best: nothing is tested", "give the test net data with --test-data NAME=FILE");
  made.mean = o_.best.substr(0, at);
  made.largest = which == "max";
  return made;
}

// Takes back what the training did after the best test.
Status TrainingJob::restore_best() {
  const auto best = o_.best.empty() ? std::nullopt : trainer_->best();
  if (!best) return {};
  const bool stopped = trainer_->is_stopped_early();
  const int64_t made = trainer_->steps();
  HEDDLE_CHECK(trainer_->restore_best(), "while the best variables were restored");
  report_.say(fmt::format("{}test {} {:.4g} of step {} is the best{}",
                          stopped ? fmt::format("stopped: {} tests in a row were no better; ", o_.patience) : "",
                          printable(o_.best.substr(0, o_.best.rfind('='))), best->second, best->first,
                          best->first == made ? "" : ": its variables are restored"));
  return {};
}

Status TrainingJob::resume() {
  if (!from_) return {};
  // Only now their tensors are read: a damaged one gives way to the one before it.
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Status status = trainer_->resume(candidates_[i].path).status();
    from_ = candidates_[i];
    if (status.ok()) break;
    const bool is_damaged = status.code() == Code::file_corrupt || status.code() == Code::file_truncated;
    if (!is_damaged || i + 1 == candidates_.size()) return status;
    Diagnostic warning = status.diagnostic();
    warning.severity = Severity::warning;
    report_.diagnose(warning);
  }
  if (from_->net != trainer_->net_checksum()) {
    Diagnostic warning;
    warning.severity = Severity::warning;
    warning.code = Code::weights_mismatch;
    warning.message = fmt::format(
        "{} was written by another form of the net: on other devices, by another version, or changed since; its "
        "variables are the same",
        quoted(from_->path));
    warning.hint = "nothing needs to be done if that is meant";
    report_.diagnose(warning);
  }
  report_.say(fmt::format("continues after step {}: {}", from_->step, quoted(from_->path)));
  return {};
}

// Opens the net that was named, else "test", where the file has it.
Status TrainingJob::open_test(const Session& all, const std::string& learning) {
  const std::string name = o_.test.empty() ? "test" : o_.test;
  if (name != learning && has_net(name)) {
    HEDDLE_TRY(test_, all.net(name));
  }
  if (!test_ && !(o_.test.empty() && o_.samples.test_data.empty()))
    return {Code::unknown_name,
            fmt::format("{}: beside the net that learns there is no net {}", o_.test.empty() ? "--test-data" : "--test", quoted(name)),
            "name a net of the file with --test NAME"};
  if (!o_.test.empty() && o_.samples.test_data.empty())
    return {Code::invalid_argument, fmt::format("--test: net {} has nothing to be tested with", quoted(name)),
            "give it data with --test-data NAME=FILE"};
  return {};
}

// Runs once, before the first step, and does not overwrite trained variables.
Status TrainingJob::run_init(const Session& all) {
  if (o_.init.empty()) return {};
  HEDDLE_TRY(Session init, all.net(o_.init), "while --init was looked up");
  if (const std::vector<PortInfo> inputs = init.inputs(); !inputs.empty())
    return {Code::missing_input, fmt::format("--init: net {} has input {}, and is given none", quoted(o_.init), quoted(inputs[0].name)),
            "name a net without inputs"};
  const Status fresh = session_->initialize(seed_);
  if (!fresh.ok())
    return {fresh.code(), fmt::format("--init: {}", fresh.diagnostic().message), "leave it out: what was trained would be lost"};
  const std::string what = fmt::format("while net {} was run for --init", quoted(o_.init));
  HEDDLE_TRY(Context context, init.prepare(), what);
  return context.run().during(what);
}

// Adds the training net for every batch, or, where operators need fixed extents, for this one.
Status TrainingJob::add_training(const std::string& name) {
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
int64_t TrainingJob::batch_of(const std::vector<PortInfo>& inputs) const {
  constexpr int64_t otherwise = 32;
  if (o_.batch > 0) return o_.batch;
  if (from_) return from_->batch;
  for (const PortInfo& port : inputs)
    if (port.shape.rank() > 0 && port.shape[0] > 0 && (port.symbols.empty() || port.symbols[0].empty())) return port.shape[0];
  return otherwise;
}

// Registers every file that is read and written, before the first is.
Status TrainingJob::check_files() const {
  FileRoles roles;
  for (const std::string& file : nets_->files()) roles.reads(file);
  for (const auto* const specs : {&o_.samples.data, &o_.samples.test_data})
    for (const std::string& file : files_of(*specs)) roles.reads(file);
  if (!o_.log.empty()) HEDDLE_CHECK(roles.writes("--log", o_.log));
  if (!o_.curve.empty()) HEDDLE_CHECK(roles.writes("--curve", o_.curve));
  if (!o_.output.empty()) HEDDLE_CHECK(writes_net(roles, o_.output));
  // Fails now if they can not be written at all, rather than after the training.
  if (!o_.curve.empty()) HEDDLE_CHECK(FileReplacement::create(o_.curve).status());
  if (!o_.checkpoint_dir.empty()) HEDDLE_CHECK(FileReplacement::create(std::filesystem::path(o_.checkpoint_dir) / "step").status());
  return o_.output.empty() ? Status() : check_net_writable(o_.output);
}

// Returns how many steps there are, before there is a trainer that knows.
int64_t TrainingJob::total_steps() const {
  const int64_t epoch = (samples_ + (o_.last_batch == "drop" ? 0 : batch_ - 1)) / batch_;
  if (o_.epochs == 0 || o_.epochs > INT64_MAX / std::max<int64_t>(1, epoch)) return o_.steps;
  return o_.steps == 0 ? epoch * o_.epochs : std::min(o_.steps, epoch * o_.epochs);
}

// Returns the inputs that samples have values for: not that of their weights.
std::vector<PortInfo> TrainingJob::inputs_of_data(const Session& net) const {
  std::vector<PortInfo> inputs = net.inputs();
  std::erase_if(inputs, [&](const PortInfo& port) { return port.name == o_.weights; });
  return inputs;
}

Status TrainingJob::read_data() {
  report_.step("reading data");
  batch_ = batch_of(session_->inputs());
  TrainerOptions options;
  options.loss = o_.loss;
  options.steps = o_.steps;
  options.epochs = o_.epochs;
  options.last_batch = o_.last_batch == "keep" ? LastBatch::keep : o_.last_batch == "pad" ? LastBatch::pad : LastBatch::drop;
  options.weights = o_.weights;
  options.batch = batch_;
  options.seed = seed_;
  options.checkpoints.folder = o_.checkpoint_dir;
  options.checkpoints.every = o_.checkpoint_every;
  options.checkpoints.keep = o_.keep;
  HEDDLE_TRY(options.best, best());
  options.on_step = [this](const TrainingStep& step) { return take_step(step); };
  options.on_evaluation = [this](const Evaluation& evaluation) { return take_evaluation(evaluation); };
  options.max_bad_samples = o_.samples.skip_bad;
  options.on_bad_sample = [this](const std::string& sample, const Status& error) {
    if (const std::optional<Diagnostic> warning = bad_samples_.take(sample, error)) report_.diagnose(*warning);
    return Status();
  };
  options.reader_threads = o_.samples.readers;
  data_.emplace(o_.samples, limits_);
  HEDDLE_TRY(auto data, data_->read(false, inputs_of_data(*session_), seed_));
  samples_ = data->samples();
  between_ = o_.eval_every > 0 ? o_.eval_every : std::max<int64_t>(1, total_steps() / 10);
  options.evaluate_every = between_;
  HEDDLE_TRY(trainer_, Trainer::create(*session_, std::move(data), options));
  if (o_.samples.test_data.empty()) return resume();
  HEDDLE_TRY(auto tests, data_->read(true, inputs_of_data(*test_), seed_ + 1));
  HEDDLE_CHECK(trainer_->test_with(*test_, std::move(tests)), "while --test-data was read");
  return resume();
}

// Warns before the first step: after hours it would be too late.
void TrainingJob::warn_of_no_output() const {
  if (!o_.output.empty() || o_.no_output || !o_.checkpoint_dir.empty()) return;
  Diagnostic warning;
  warning.severity = Severity::warning;
  warning.code = Code::invalid_argument;
  warning.message = "nothing of what is learned will be kept, at the end or when it is interrupted: no file is named for it";
  warning.hint = "name one with -o NET.heddle, or say --no-output where that is meant";
  report_.diagnose(warning);
}

Status TrainingJob::take_step(const TrainingStep& step) {
  seconds_ += static_cast<double>(step.run_ns) / 1e9;
  losses_.add(step.step, step.loss);
  show(step);
  // The training ends with an error that has these numbers.
  if (!std::isfinite(step.loss) || !std::isfinite(step.gradient_norm.value_or(0))) return {};
  Json line = {{"step", step.step},
               {"loss", number(step.loss)},
               {"step_ns", step.run_ns},
               {"read_ns", step.read_ns},
               {"learning_rate", step.learning_rate ? number(*step.learning_rate) : Json()}};
  if (step.gradient_norm) line["gradient_norm"] = number(*step.gradient_norm);
  HEDDLE_CHECK(log_.write(line));
  if (o_.samples.test_data.empty() && (step.step % between_ == 0 || step.step == trainer_->total_steps()))
    report_.say(fmt::format("step {}: loss {:.4g}", step.step, step.loss));
  return {};
}

Status TrainingJob::take_evaluation(const Evaluation& evaluation) {
  tested_ = evaluation.means;
  Json line = {{"step", evaluation.step}};
  std::string text;
  for (const auto& [name, value] : tested_) {
    line["test_" + name] = number(value);
    text += fmt::format(", test {} {:.4g}", printable(name), value);
    if (name == o_.loss) test_losses_.add(evaluation.step, value);
  }
  const double loss = losses_.empty() && from_ ? from_->loss : losses_.last().loss;  // a test that the interruption was before
  report_.say(fmt::format("step {}: loss {:.4g}{}", evaluation.step, loss, text));
  return log_.write(line);
}

// Shows progress on a terminal only, a few times a second: the pace since it was last shown, and what is left at the pace so far.
void TrainingJob::show(const TrainingStep& step) {
  constexpr double between_ns = 2e8;
  pace_.samples += step.samples;
  pace_.read_ns += static_cast<double>(step.read_ns);
  const uint64_t now = ticks();
  if (begun_ == 0) begun_ = shown_ = now - ns_to_ticks(static_cast<double>(step.run_ns + step.read_ns));
  const double since_ns = ticks_to_ns(now - shown_);
  if (losses_.count() > 1 && since_ns < between_ns) return;
  const double each_ns = ticks_to_ns(now - begun_) / static_cast<double>(losses_.count());
  const double waits = pace_.read_ns / since_ns;
  report_.step(fmt::format("step {} of {}: loss {:.4g}, {:.0f} samples/s{}, {} left", step.step, trainer_->total_steps(), step.loss,
                           static_cast<double>(pace_.samples) * 1e9 / since_ns,
                           waits >= 0.05 ? fmt::format(", {:.0f}% of it waiting for data", 100 * waits) : "",
                           duration_text(each_ns * static_cast<double>(trainer_->total_steps() - step.step) / 1e9)));
  shown_ = now;
  pace_ = {};
}

Status TrainingJob::run() {
  report_.step("compiling");
  HEDDLE_CHECK(trainer_->prepare());
  note_host_steps();
  // The log of an earlier training is replaced when no check is left that may fail.
  if (!o_.log.empty()) HEDDLE_CHECK(log_.open(o_.log, trainer_->steps()));
  warn_of_no_output();
  if (!o_.output.empty()) {  // variables that are not saved are not checked
    HEDDLE_TRY(infinite_at_first_, not_finite());
  }
  interruptible_.emplace([this] { trainer_->cancel(); });
  Status status = trainer_->run();
  if (status.code() == Code::cancelled && interrupting_signal() != 0) status = interruption();
  // Variables are as the last step left them, unless it has made them infinite. An error of a checkpoint would only come again.
  const bool is_whole = status.code() != Code::numerics && (status.code() != Code::file_unwritable || log_.has_failed());
  if (!status.ok() && is_whole && !o_.checkpoint_dir.empty() && has_learned()) {
    const Status saved = trainer_->save_checkpoint();
    if (!saved.ok()) report_.diagnose(saved.diagnostic());
  }
  stopped_early_ = trainer_->is_stopped_early();
  return status.ok() ? restore_best() : status;
}

// Says which operators run on the host because their device has no kernel for them.
void TrainingJob::note_host_steps() {
  std::map<std::string, int> types;
  int count = 0;
  const std::shared_ptr<const PlanInfo> plan = trainer_->plan();
  if (!plan) return;  // there is no memory to describe it
  for (const Diagnostic& said : plan->warnings)
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

Status TrainingJob::save() {
  Status saved = o_.output.empty() ? Status() : save_nets_with_variables();
  Status drawn = o_.curve.empty() ? Status() : write_loss_curve(o_.curve, o_.file, losses_, test_losses_);
  return saved.ok() ? drawn : saved;
}

// Returns the variables with a number that is not finite.
Result<std::set<std::string>> TrainingJob::not_finite() const {
  std::set<std::string> names;
  for (const std::string& name : session_->variables()) {
    HEDDLE_TRY(const Tensor value, session_->read_variable(name));
    if (first_not_finite(value.view()) >= 0) names.insert(name);
  }
  return names;
}

Status TrainingJob::save_nets_with_variables() {
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

Json TrainingJob::best_json() const {
  const auto best = trainer_ && !o_.best.empty() ? trainer_->best() : std::nullopt;
  return best ? Json{{"step", best->first}, {"mean", number(best->second)}} : Json();
}

void TrainingJob::describe() {
  if (const std::string left_out = bad_samples_.summary(); !left_out.empty()) report_.say(left_out);
  Json test, classes = Json::object();
  for (const auto& [name, value] : tested_) test[name] = number(value);
  if (data_)
    for (const auto& [input, of_input] : data_->classes()) classes[input] = of_input.names();
  report_.json["train"] = {{"steps", losses_.count()},
                           {"batch", batch_},
                           {"samples", trainer_ ? Json(samples_) : Json()},
                           {"classes", classes},
                           {"resumed_from", from_ ? Json(from_->step) : Json()},
                           {"best", best_json()},
                           {"stopped_early", stopped_early_},
                           {"bad_samples", bad_samples_.count()},
                           {"first_loss", losses_.empty() ? Json() : number(losses_.first().loss)},
                           {"last_loss", losses_.empty() ? Json() : number(losses_.last().loss)},
                           {"seconds", seconds_},
                           {"test", test}};
}

}  // namespace heddle::tool
