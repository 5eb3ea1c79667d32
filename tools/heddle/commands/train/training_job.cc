#include "commands/train/training_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "base/file.h"
#include "base/text/text.h"
#include "common/file_roles.h"
#include "common/written_net.h"
#include "state/checkpoint_file.h"

namespace heddle::tool {

bool TrainingJob::has_net(const std::string& name) const {
  const std::vector<std::string> names = nets_->names();
  return std::find(names.begin(), names.end(), name) != names.end();
}

Status TrainingJob::open_and_read() {
  HEDDLE_CHECK(open());
  HEDDLE_CHECK(read_data());
  return await_ranks();
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
  HEDDLE_CHECK(check_ranks(name));
  HEDDLE_CHECK(look_for_checkpoint());
  HEDDLE_CHECK(check_files());
  SessionOptions options;
  HEDDLE_CHECK(o_.memory_limit.apply(options));
  options.seed = seed_;
  options.limits = limits_;
  o_.commit.apply(options);
  options.communicators = {place_};    // whatever their names
  options.copies = Copies::automatic;  // nets with replicas have some by construction
  HEDDLE_TRY(Session all, runtime_->open(*nets_, options));
  HEDDLE_TRY(session_, all.net(name));
  HEDDLE_CHECK(open_test(all, name));
  HEDDLE_CHECK(agree_on_start());
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
  TrainingFlags flags = o_.training;
  flags.ranks = place_.size;
  HEDDLE_TRY(TrainingOptions how, flags.options(o_.loss));
  Status made = nets_->add_training(*runtime_, name, how, name);
  if (made.code() != Code::shape_mismatch) return made;
  const Result<Session> as_it_is = runtime_->open(*nets_);
  if (!as_it_is.ok()) return made;
  HEDDLE_TRY(const Session learner, as_it_is->net(name));
  const int64_t batch = batch_of(learner.inputs());
  std::map<std::string, int64_t> symbols, of_offsets;
  for (const PortInfo& port : learner.inputs()) {
    if (port.symbols.empty() || port.symbols[0].empty()) continue;
    if (!o_.samples.is_ragged(port.name))
      symbols.emplace(port.symbols[0], batch);
    else if (o_.samples.are_offsets(port.name))
      of_offsets.emplace(port.symbols[0], batch + 1);  // where the number of all values is the last of them
  }
  if (symbols.empty()) return made;
  how.symbols.assign(symbols.begin(), symbols.end());
  made = nets_->add_training(*runtime_, name, how, name);
  if (made.code() == Code::shape_mismatch && !of_offsets.empty()) {
    how.symbols.insert(how.symbols.end(), of_offsets.begin(), of_offsets.end());
    made = nets_->add_training(*runtime_, name, how, name);
  }
  HEDDLE_CHECK(made);
  report_.say(fmt::format("net {} does not fit every batch: it learns with {} samples", quoted(name), batch_of(learner.inputs())));
  return {};
}

// Returns --batch, else the batch that the net declares.
int64_t TrainingJob::batch_of(const std::vector<PortInfo>& inputs) const {
  constexpr int64_t otherwise = 32;
  if (o_.batch > 0) return o_.batch;
  if (from_) return from_->batch;
  if (batch_of_first_ > 0) return batch_of_first_;
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
  if (!o_.curve_file().empty()) HEDDLE_CHECK(roles.writes("--curve", o_.curve));
  if (!o_.output.empty()) HEDDLE_CHECK(writes_net(roles, o_.output));
  HEDDLE_CHECK(check_no_checkpoint("--log", o_.log));
  HEDDLE_CHECK(check_no_checkpoint("--curve", o_.curve_file()));
  HEDDLE_CHECK(check_no_checkpoint("-o", o_.output));
  if (!o_.output.empty()) HEDDLE_CHECK(check_no_checkpoint("-o", std::filesystem::path(o_.output).replace_extension(".safetensors")));
  // Fails now if they can not be written at all, rather than after the training.
  if (!o_.curve_file().empty() && !takes_bytes_as_they_come(o_.curve)) HEDDLE_CHECK(FileReplacement::create(o_.curve).status());
  if (o_.curve == "-" && report_.common.json)
    return {Code::invalid_argument, "--curve - goes to standard output, and so does the object of --json", "name a file for one of them"};
  if (roles.uses_standard_output()) HEDDLE_CHECK(report_.give_up_standard_output());
  if (!o_.checkpoint_dir.empty()) HEDDLE_CHECK(FileReplacement::create(std::filesystem::path(o_.checkpoint_dir) / "step").status());
  return o_.output.empty() ? Status() : check_net_writable(o_.output);
}

// Checks that no picture that is read would be written over. Outputs that are not there yet are none.
Status TrainingJob::check_pictures_stay() const {
  std::vector<std::pair<const char*, std::filesystem::path>> outputs = {{"--log", o_.log}, {"--curve", o_.curve_file()}, {"-o", o_.output}};
  if (!o_.output.empty()) outputs.emplace_back("-o", std::filesystem::path(o_.output).replace_extension(".safetensors"));
  for (const auto& [option, file] : outputs) {
    std::error_code error;
    if (file.empty() || !std::filesystem::exists(file, error)) continue;
    for (const std::string& picture : data_->pictures())
      if (std::filesystem::equivalent(picture, file, error))
        return {Code::invalid_argument, fmt::format("{} {} is one of the pictures that are read", option, quoted(file.string())),
                "give the output another name"};
  }
  return {};
}

// Checks that a file is not called like a checkpoint in their folder, where it would be taken for one, and be removed as an old one.
Status TrainingJob::check_no_checkpoint(const std::string& what, const std::string& file) const {
  if (file.empty() || o_.checkpoint_dir.empty()) return {};
  std::error_code error;
  const std::filesystem::path place = std::filesystem::weakly_canonical(std::filesystem::absolute(file, error), error);
  if (error || !step_of_checkpoint(place.filename().string())) return {};
  if (!std::filesystem::equivalent(place.parent_path(), o_.checkpoint_dir, error)) return {};
  return {Code::invalid_argument,
          fmt::format("{} {} is called like a checkpoint in {}, the folder of checkpoints", what, quoted(file), quoted(o_.checkpoint_dir)),
          "give the file another name"};
}

// Return how many steps there are, before there is a trainer that knows.
int64_t TrainingJob::steps_of_epoch() const {
  return (samples_ + (o_.last_batch == "drop" ? 0 : batch_ - 1)) / batch_;
}
int64_t TrainingJob::total_steps() const {
  const int64_t epoch = steps_of_epoch();
  if (o_.epochs == 0 || o_.epochs > INT64_MAX / std::max<int64_t>(1, epoch)) return o_.steps;
  return o_.steps == 0 ? epoch * o_.epochs : std::min(o_.steps, epoch * o_.epochs);
}
int64_t TrainingJob::steps_between_tests() const {
  if (o_.eval_every > 0) return o_.eval_every;
  const int64_t epoch = std::max<int64_t>(1, steps_of_epoch());
  if (o_.eval_epochs > 0) return o_.eval_epochs > INT64_MAX / epoch ? INT64_MAX : o_.eval_epochs * epoch;
  return std::max<int64_t>(1, total_steps() / 10);
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
  options.metrics = o_.metrics;
  options.checkpoints.folder = o_.checkpoint_dir;
  options.checkpoints.every = o_.checkpoint_every;
  options.checkpoints.keep = o_.keep;
  if (!o_.metrics.empty() && o_.samples.test_data.empty())
    return {Code::invalid_argument, "--metric: nothing is tested", "give the test net data with --test-data NAME=FILE"};
  HEDDLE_TRY(options.best, best());
  options.on_step = [this](const TrainingStep& step) { return take_step(step); };
  options.on_evaluation = [this](const Evaluation& evaluation) { return take_evaluation(evaluation); };
  options.max_bad_samples = o_.samples.skip_bad;
  options.on_bad_sample = [this](const std::string& sample, const Status& error) {
    const std::optional<Diagnostic> warning = bad_samples_.take(sample, error);
    if (!warning) return Status();
    const bool is_quiet = std::exchange(report_.common.quiet, report_.common.quiet && !o_.verbose);  // each rank knows its own alone
    report_.diagnose(*warning);
    report_.common.quiet = is_quiet;
    return Status();
  };
  options.reader_threads = o_.samples.readers;
  data_.emplace(o_.samples, limits_);
  HEDDLE_TRY(auto data, data_->read(false, inputs_of_data(*session_), seed_));
  samples_ = data->samples();
  say_classes();
  between_ = steps_between_tests();
  options.evaluate_every = between_;
  HEDDLE_CHECK(check_pictures_stay());
  HEDDLE_TRY(trainer_, Trainer::create(*session_, std::move(data), options));
  if (o_.samples.test_data.empty()) return resume();
  HEDDLE_TRY(auto tests, data_->read(true, inputs_of_data(*test_), seed_ + 1));
  HEDDLE_CHECK(check_pictures_stay());
  HEDDLE_CHECK(trainer_->test_with(*test_, std::move(tests)), "while --test-data was read");
  return resume();
}

// Says which numbers stand for which texts, where there are few.
void TrainingJob::say_classes() const {
  constexpr size_t shown = 12;
  for (const auto& [input, of_input] : data_->classes()) {
    std::vector<std::string> names;
    for (size_t i = 0; i < std::min(shown, of_input.names().size()); ++i) names.push_back(printable(of_input.names()[i]));
    if (of_input.names().size() > shown) names.emplace_back("...");
    report_.say(fmt::format("{}: {} classes: {}", printable(input), of_input.names().size(), join(names, ", ")));
  }
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

Status TrainingJob::run() {
  report_.step("compiling");
  HEDDLE_CHECK(trainer_->prepare());
  note_host_steps();
  // The log of an earlier training is replaced when no check is left that may fail.
  HEDDLE_CHECK(open_log());
  warn_of_no_output();
  if (!o_.output.empty()) {  // variables that are not saved are not checked
    HEDDLE_TRY(infinite_at_first_, not_finite());
  }
  interruptible_.emplace([this] { trainer_->cancel(); });
  if (place_.size > 1) report_.say(fmt::format("{} ranks train together, by {}", place_.size, place_.rendezvous));
  say_collectives();
  say_rank("begins");
  Status status = trainer_->run();
  say_rank("ends");
  // A rank that is told to stop may see first that others have stopped.
  const auto was_told = [&] {
    return interrupting_signal() != 0 && (status.code() == Code::cancelled || (place_.size > 1 && status.code() == Code::device_failed));
  };
  if (was_told()) status = interruption();
  // Variables are as the last step left them, unless it has made them infinite. An error of a checkpoint would only come again.
  const bool is_whole = status.code() != Code::numerics && (status.code() != Code::file_unwritable || (log_ && log_->has_failed()));
  if (!status.ok() && is_whole && !o_.checkpoint_dir.empty() && has_learned()) {
    const Status saved = trainer_->save_checkpoint();
    if (!saved.ok()) report_.diagnose(saved.diagnostic());
  }
  if (was_told()) status = interruption();
  if (log_) {
    Status finished = log_->finish();
    if (status.ok()) status = std::move(finished);
  }
  stopped_early_ = trainer_->is_stopped_early();
  return status.ok() ? restore_best() : status;
}

}  // namespace heddle::tool
