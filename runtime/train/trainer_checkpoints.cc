#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/library_version.h"
#include "base/text/text.h"
#include "session/session_impl.h"
#include "train/trainer_state.h"

namespace heddle {

Status Trainer::State::note_best(const Evaluation& of) {
  if (options.best.mean.empty()) return {};
  const auto found = std::find_if(of.means.begin(), of.means.end(), [&](const auto& mean) { return mean.first == options.best.mean; });
  if (found == of.means.end())
    return {Code::unknown_name,
            fmt::format("net {} has no output {} that is one number", quoted(tester->session().name()), quoted(options.best.mean)),
            "name one of its outputs without axes"};
  const bool is_better =
      !std::isnan(found->second) && (best_step < 0 || (options.best.largest ? found->second > best_mean : found->second < best_mean));
  if (!is_better && made != judged_step) ++since_best;
  judged_step = made;
  if (is_stopped_early()) saving_due = has_folder();
  if (!is_better) return {};
  best_step = made;
  best_mean = found->second;
  since_best = 0;
  best_due = has_folder();
  if (best_due || !writes_files()) return {};
  HEDDLE_TRY(best_contents, Internals::of(learner.session()).variables->snapshot());
  return {};
}

Status Trainer::State::restore_best() {
  if (best_step < 0) return {Code::invalid_argument, "there is no best evaluation", "name a mean in TrainerOptions::best, and test"};
  if (best_step == made) return {};
  const int64_t step = best_step;
  const double mean = best_mean;
  joined = false;
  if (!writes_files()) {
    HEDDLE_CHECK(join());
  } else if (has_folder()) {
    HEDDLE_CHECK(resume(path_of(step)).status());
  } else {
    if (best_contents.empty())
      return {Code::invalid_argument, fmt::format("the variables of step {}, the best, are in another folder", step),
              "resume with its folder"};
    HEDDLE_CHECK(Internals::of(learner.session()).variables->replace(best_contents));
    made = step;
    evaluated = {};
    evaluation_due = saving_due = best_due = false;
  }
  HEDDLE_CHECK(join());
  best_step = judged_step = step;
  best_mean = mean;
  since_best = 0;
  return {};
}

std::string Trainer::State::path_of(int64_t step) const {
  return (std::filesystem::path(options.checkpoints.folder) / checkpoint_name(step)).string();
}

// Returns what decides which evaluation is the best, as checkpoints have it.
std::string Trainer::State::best_rule() const {
  return options.best.mean.empty() ? std::string() : fmt::format("{}={}", options.best.mean, options.best.largest ? "max" : "min");
}

CheckpointInfo Trainer::State::checkpoint_info() const {
  CheckpointInfo info;
  info.step = made;
  info.loss = last_loss;
  if (evaluated.step == made) info.means = evaluated.means;
  info.best = best_rule();
  info.best_step = best_step;
  info.best_mean = best_mean;
  info.evaluations_since_best = since_best;
  info.seed = options.seed;
  info.samples = learner.data().samples();
  info.data = data_identity;
  info.batch = options.batch;
  info.last_batch = options.last_batch;
  info.shuffles = options.shuffle;
  info.version = library_version();
  info.net = net_checksum;
  return info;
}

Status Trainer::State::save_checkpoint() {
  if (!has_folder()) return {Code::invalid_argument, "there is no folder for checkpoints", "name one in TrainerOptions::checkpoints"};
  // An error here is that of the one before: this one is still due.
  if (writer.newest() != made) HEDDLE_CHECK(writer.begin(checkpoint_info()));
  saving_due = best_due = false;
  return {};
}

// Takes note of what the writer says: a last checkpoint that has failed is still due.
Status Trainer::State::take(Status of_writer) {
  if (!of_writer.ok()) saving_due = saving_due || is_over();
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
  if (!of.data.empty() && !own.data.empty() && of.data != own.data)
    return {Code::invalid_argument,
            fmt::format(
                "checkpoint {}: its training has other samples: others of them, in another order, of other classes or changed otherwise",
                quoted(of.path)),
            "continue with the same, or load its variables alone: load_variables()"};
  if (of.batch != own.batch) return differ("batch", of.batch, own.batch);
  if (of.last_batch != own.last_batch) return differ("last_batch", to_string(of.last_batch), to_string(own.last_batch));
  if (of.shuffles != own.shuffles) return differ("shuffle", of.shuffles, own.shuffles);
  return {};
}

// Takes what a checkpoint says of the best evaluation, if it was judged by the same mean and its variables are there.
void Trainer::State::take_best(const CheckpointInfo& of) {
  best_contents.clear();
  judged_step = of.means.empty() ? -1 : of.step;
  std::error_code none;
  const bool is_same = of.best == best_rule() && of.best_step >= 0 &&
                       (of.best_step == of.step || (has_folder() && std::filesystem::exists(path_of(of.best_step), none)));
  best_step = is_same ? of.best_step : -1;
  best_mean = is_same ? of.best_mean : 0;
  since_best = of.best == best_rule() ? of.evaluations_since_best : 0;
  if (best_step == of.step && !has_folder()) best_step = -1;  // its variables are in no memory
}

Result<CheckpointInfo> Trainer::State::resume(const std::string& path) {
  HEDDLE_CHECK(writer.wait());
  joined = false;
  if (!writes_files()) {  // the file is there for rank 0
    HEDDLE_CHECK(join());
    return checkpoint_info();
  }
  const Session::Impl& session = Internals::of(learner.session());
  HEDDLE_CHECK(session.runtime->made.check());
  HEDDLE_TRY(ReadCheckpoint read, read_checkpoint(*session.variables, path, session.options.limits));
  HEDDLE_CHECK(check_order(read.info));
  HEDDLE_CHECK(session.variables->replace(read.contents));
  made = read.info.step;
  last_loss = read.info.loss;
  evaluated = {};
  if (!read.info.means.empty()) evaluated = {made, 0, read.info.means};
  evaluation_due = is_due(options.evaluate_every) && read.info.means.empty();
  saving_due = best_due = false;
  const std::filesystem::path file(path);
  std::error_code none;
  const bool is_in_folder =
      file.filename() == checkpoint_name(made) && std::filesystem::equivalent(file.parent_path() / ".", options.checkpoints.folder, none);
  writer.set_newest(is_in_folder ? made : -1);
  take_best(read.info);
  return std::move(read.info);
}

}  // namespace heddle
