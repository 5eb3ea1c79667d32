#include "options/training_flags.h"

#include <fmt/format.h>

#include <charconv>

#include "base/text/text.h"
#include "infer/registry_evaluator.h"
#include "plugin/search.h"
#include "resolve/resolve.h"
#include "tensors/inputs.h"

namespace heddle::tool {

void TrainingFlags::declare(CLI::App& app) {
  std::string names;
  for (const Optimizer& o : heddle::optimizers()) names += fmt::format("{}{}", names.empty() ? "" : ", ", o.name);
  const auto option = [&](const char* flag, auto& value, const std::string& what, const char* type) {
    CLI::Option* const made = app.add_option(flag, value, what)->type_name(type);
    made->each([this, flag](const std::string&) { given_.emplace_back(flag); });  // the options are destroyed when the command runs
    return made;
  };
  const auto flag = [&](const char* name, bool& value, const char* what) {
    app.add_flag(name, value, what)->each([this, name](const std::string&) { given_.emplace_back(name); });
  };
  option("--optimizer", optimizer, names, "NAME")->capture_default_str();
  option("--set", settings, "of the optimizer: momentum=0.9, weight_decay=0.0001, ...", "NAME=NUMBER");
  option("--dense", dense, "a table whose gradient is to have its whole shape", "NAME");
  option("--learning-rate", rate, "which the schedule starts from", "R")->capture_default_str()->check(any_number());
  option("--schedule", schedule, "constant, step(every, gamma), exponential(gamma), polynomial(steps, power, end), cosine(steps, end)",
         "RULE")
      ->capture_default_str();
  option("--warm-up", warm_up, "steps in which the rate rises", "N")->check(whole_number(INT64_MAX));
  option("--clip-value", clip_value, "gradients are held to [-X, X]", "X")->check(any_number());
  option("--clip-norm", clip_norm, "gradients together are held to that norm", "X")->check(any_number());
  flag("--gradient-norm", gradient_norm, "the norm of all gradients before they are clipped: an output, in the log of each step");
  option("--devices", devices, "a replica on each, of one kind, which has its part of the batch: sim:0,sim:1", "D,D")->delimiter(',');
  option("--single", single, "a variable without replicas: it is on the host, and so is what reads it", "NAME");
  option("--whole", whole, "an input that each replica gets as it is; the others are split along axis 0", "NAME");
  flag("--combine-statistics", combine_statistics, "BatchNormalization over all replicas: two collectives more in each");
  option("--average", average, "keeps averages of the weights: decay * average + (1 - decay) * weight after each step", "DECAY")
      ->check(any_number());
}

Status TrainingFlags::check_not_given(const std::string& why) const {
  if (!given_.empty())
    return {Code::invalid_argument, fmt::format("{}: {}", given_.front(), why),
            "leave it out, or make a training form with heddle model --train"};
  return {};
}

Result<Net> TrainingFlags::learning(const Net& net, const std::string& loss, const CommonOptions& common) const {
  HEDDLE_TRY(const TrainingOptions made, options(loss));
  Registry plugins;
  HEDDLE_CHECK(load_plugins(plugins, runtime_options(common)));
  const auto registry = plugins.snapshot();
  HEDDLE_TRY(const Net resolved, resolve(net, registry));
  return training_net(resolved, registry, *make_registry_evaluator(registry), made);
}

Result<TrainingOptions> TrainingFlags::options(const std::string& loss) const {
  TrainingOptions made;
  made.losses = {loss};
  made.optimizer = optimizer;
  made.clip_value = clip_value;
  made.dense = dense;
  made.clip_norm = clip_norm;
  made.gradient_norm = gradient_norm;
  made.average = average;
  made.parallel.devices = devices;
  made.parallel.ranks = ranks;
  made.parallel.single = single;
  made.parallel.whole = whole;
  made.parallel.combine_statistics = combine_statistics;
  if (!made.parallel.any() && !(single.empty() && whole.empty() && !combine_statistics))
    return Status(Code::invalid_argument,
                  fmt::format("{}: there are no replicas", !single.empty()  ? "--single"
                                                           : !whole.empty() ? "--whole"
                                                                            : "--combine-statistics"),
                  "say on which devices they are, as in --devices sim:0,sim:1, or how many processes there are (--ranks)");
  HEDDLE_TRY(made.learning_rate, LearningRate::parse(rate, schedule, warm_up));
  HEDDLE_TRY(const std::vector<NameValue> given, split_name_values("--set", settings));
  for (const auto& [name, text] : given) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size())
      return Status(Code::invalid_argument, fmt::format("--set {}: {} is no number", name, quoted(text)), "write it like momentum=0.9");
    made.settings.emplace_back(name, value);
  }
  return made;
}

}  // namespace heddle::tool
