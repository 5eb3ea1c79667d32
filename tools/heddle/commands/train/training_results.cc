// The results of a training: its progress, log and picture, and the net that was trained.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "base/element.h"
#include "base/text/text.h"
#include "base/threads/clock.h"
#include "base/threads/once_answered.h"
#include "commands/train/training_job.h"
#include "common/progress.h"

namespace heddle::tool {

Status TrainingJob::open_log() {
  if (o_.log.empty()) return {};
  std::vector<std::string> means;
  if (TrainingLog::is_table(o_.log)) {
    HEDDLE_TRY(means, trainer_->test_means());
  }
  log_.emplace(o_.log, means);
  return log_->open(trainer_->steps(), &curves_);
}

Status TrainingJob::take_step(const TrainingStep& step) {
  seconds_ += static_cast<double>(step.run_ns) / 1e9;
  losses_.add(step.step, step.loss);
  curves_.add(step);
  show(step);
  // The training ends with an error that has these numbers.
  if (!std::isfinite(step.loss) || !std::isfinite(step.gradient_norm.value_or(0))) return {};
  const bool is_due = step.step % between_ == 0 || step.step == trainer_->total_steps();
  if (log_) HEDDLE_CHECK(log_->write(step, is_due && !o_.samples.test_data.empty()));
  if (is_due && o_.samples.test_data.empty()) report_.say(fmt::format("step {}: loss {:.4g}", step.step, step.loss));
  return {};
}

Status TrainingJob::take_evaluation(const Evaluation& evaluation) {
  tested_ = evaluation.means;
  std::string text;
  for (const auto& [name, value] : tested_) text += fmt::format(", test {} {:.4g}", printable(name), value);
  curves_.add(evaluation);
  const double loss = losses_.empty() && from_ ? from_->loss : losses_.last().value;  // a test that the interruption was before
  report_.say(fmt::format("step {}: loss {:.4g}{}", evaluation.step, loss, text));
  return log_ ? log_->write(evaluation, (evaluation.step - 1) / steps_of_epoch() + 1) : Status();
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
  report_.step(fmt::format("step {} of {}: {}loss {:.4g}, {:.0f} samples/s{}, {} left", step.step, trainer_->total_steps(),
                           place_.size > 1 ? fmt::format("{} ranks, ", place_.size) : std::string(), step.loss,
                           static_cast<double>(pace_.samples) * 1e9 / since_ns,
                           waits >= 0.05 ? fmt::format(", {:.0f}% of it waiting for data", 100 * waits) : "",
                           time_left_text(each_ns * static_cast<double>(trainer_->total_steps() - step.step) / 1e9)));
  shown_ = now;
  pace_ = {};
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

// Says which kernels of devices do the collectives: of a library, as nccl:AllReduce, or by copies, as cuda:AllReduce.
void TrainingJob::say_collectives() const {
  const std::shared_ptr<const PlanInfo> plan = trainer_->plan();
  if (!plan) return;
  std::set<std::string> names, devices, kernels;
  for (const PlanInfo::Collective& collective : plan->collectives) names.insert(collective.name), devices.insert(collective.device);
  for (const PlanInfo::Step& step : plan->steps)
    if (names.contains(step.name) && !step.device.starts_with("cpu") && !step.kernel.starts_with("cpu:")) kernels.insert(step.kernel);
  if (!kernels.empty())
    report_.say(fmt::format("collectives on {} by {}", join({devices.begin(), devices.end()}, " and "),
                            join({kernels.begin(), kernels.end()}, ", ")));
}

Status TrainingJob::save() {
  Status saved = o_.output.empty() ? Status() : once_answered([&] { return save_nets_with_variables(); });
  Status drawn = o_.curve.empty() ? Status() : draw_curves();
  return saved.ok() ? drawn : saved;
}

// A picture of an earlier part of the training is worth more than one of nothing.
Status TrainingJob::draw_curves() {
  std::error_code none;
  const LineChart chart = training_chart(std::filesystem::path(o_.file).filename().string(), o_.loss, curves_);
  if (o_.curve_file().empty()) {
    report_.print(line_chart_text(chart));
    return {};
  }
  if (!curves_.loss.empty() || !std::filesystem::exists(o_.curve, none)) return write_training_chart(o_.curve, chart);
  report_.say(fmt::format("{} stays as it is: no step was left to be made", quoted(o_.curve)));
  return {};
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
  // A training that was over before it was resumed has the numbers of its checkpoint.
  Json test, classes = Json::object(), last_loss;
  for (const auto& [name, value] : tested_.empty() && from_ ? from_->means : tested_) test[name] = number(value);
  if (!losses_.empty() || from_) last_loss = number(losses_.empty() ? from_->loss : losses_.last().value);
  if (data_)
    for (const auto& [input, of_input] : data_->classes()) classes[input] = of_input.names();
  report_.json["train"] = {{"steps", losses_.count()},
                           {"batch", batch_},
                           {"samples", trainer_ ? Json(samples_) : Json()},
                           {"rank", place_.rank},
                           {"ranks", place_.size},
                           {"classes", classes},
                           {"resumed_from", from_ ? Json(from_->step) : Json()},
                           {"best", best_json()},
                           {"stopped_early", stopped_early_},
                           {"bad_samples", bad_samples_.count()},
                           {"first_loss", losses_.empty() ? Json() : number(losses_.first().value)},
                           {"last_loss", last_loss},
                           {"seconds", seconds_},
                           {"test", test}};
}

}  // namespace heddle::tool
