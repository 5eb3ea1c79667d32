#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <span>

#include "base/checksum.h"
#include "base/library_version.h"
#include "base/text/text.h"
#include "net/print.h"
#include "plugin/host.h"
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
  if (is_stopped_early()) saving_due = !options.checkpoints.folder.empty();
  if (!is_better) return {};
  best_step = made;
  best_mean = found->second;
  since_best = 0;
  saving_due = !options.checkpoints.folder.empty();
  if (saving_due) return {};
  HEDDLE_TRY(best_contents, Internals::of(learner.session()).variables->snapshot());
  return {};
}

Status Trainer::State::restore_best() {
  if (best_step < 0) return {Code::invalid_argument, "there is no best evaluation", "name a mean in TrainerOptions::best, and test"};
  if (best_step == made) return {};
  if (options.checkpoints.folder.empty()) {
    HEDDLE_CHECK(Internals::of(learner.session()).variables->replace(best_contents));
    made = best_step;
    since_best = 0;
    return {};
  }
  const int64_t step = best_step;
  HEDDLE_CHECK(resume((std::filesystem::path(options.checkpoints.folder) / checkpoint_name(step)).string()).status());
  return {};
}

CheckpointInfo Trainer::State::checkpoint_info() const {
  CheckpointInfo info;
  info.step = made;
  info.loss = last_loss;
  if (evaluated.step == made) info.means = evaluated.means;
  info.best_step = best_step;
  info.best_mean = best_mean;
  info.evaluations_since_best = since_best;
  info.seed = options.seed;
  info.samples = learner.data().samples();
  info.batch = options.batch;
  info.last_batch = options.last_batch;
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
  if (!of_writer.ok()) saving_due = is_over();
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
  if (of.last_batch != own.last_batch) return differ("last_batch", to_string(of.last_batch), to_string(own.last_batch));
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
  best_step = read.info.best_step;
  best_mean = read.info.best_mean;
  since_best = read.info.evaluations_since_best;
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

}  // namespace heddle
