// import: an ONNX model becomes a net, or two nets that train and test it.
#include "onnx/import.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/progress.h"
#include "common/written_net.h"
#include "load/save.h"
#include "onnx/operators/operators.h"
#include "options/limit_options.h"
#include "plugin/search.h"
#include "resolve/resolve.h"
#include "trainable/imported_form.h"

namespace heddle::tool {
namespace {

struct ImportArguments {
  std::string model, output, loss;
  trainable::WeightRequest weights;  // patterns of --trainable may be empty texts
  bool trainable = false;
  LimitOptions limits;
};

// Says which variables learn: a pattern may choose others than were meant.
void report_weights(const std::vector<std::string>& weights, Report& report) {
  constexpr size_t shown = 6;
  report.json["trainable"] = weights;
  std::vector<std::string> first(weights.begin(), weights.begin() + static_cast<std::ptrdiff_t>(std::min(shown, weights.size())));
  report.say(fmt::format("{}: {}{}", weights.size() == 1 ? std::string("1 weight learns") : fmt::format("{} weights learn", weights.size()),
                         all_quoted(first), weights.size() > shown ? ", ..." : ""));
}

Status save_imported_form(const ImportArguments& o, const trainable::WeightRequest& weights, Net net,
                          const std::shared_ptr<const RegistrySnapshot>& registry, const SaveOptions& save, Report& report) {
  HEDDLE_TRY(const trainable::LossChoice loss, trainable::LossChoice::parse(o.loss));
  HEDDLE_TRY(const trainable::ImportedForm form, trainable::imported_form(std::move(net), weights, loss, registry, save.limits),
             fmt::format("while importing {}", quoted(o.model)));
  HEDDLE_CHECK(save_nets(std::vector<Net>{form.train, form.test}, o.output, save));
  report_training_form(form.train, form.test, form.parameters, o.output, report);
  report_weights(form.weights, report);
  for (const auto& [copy, weight] : form.copies)
    report.say(fmt::format("{} is a copy of {}: they learn as one", quoted(copy), quoted(weight)));
  return {};
}

Status check_together(const ImportArguments& o) {
  if (o.trainable == !o.loss.empty()) return {};
  if (o.trainable)
    return {Code::invalid_argument, "--trainable: nothing says what the net is to learn",
            "add --loss cross_entropy:LOGITS,labels, or mse or bce"};
  return {Code::invalid_argument, "--loss: without --trainable the weights are constants", "add --trainable, or leave --loss out"};
}

Status import_model(const ImportArguments& o, Report& report) {
  HEDDLE_CHECK(check_together(o));
  if (o.trainable) HEDDLE_CHECK(trainable::LossChoice::parse(o.loss).status());
  Registry plugins;
  HEDDLE_CHECK(load_plugins(plugins, runtime_options(report.common)));
  ImportOptions options;
  HEDDLE_TRY(options.limits, o.limits.limits());
  options.keep_dropouts = o.trainable;
  FileRoles roles;
  roles.reads(o.model);
  HEDDLE_CHECK(writes_net(roles, o.output));
  std::vector<std::filesystem::path> external;
  options.files_read = &external;
  trainable::WeightRequest weights = o.weights;
  options.initializers = &weights.initializers;
  report.step(fmt::format("reading {}", o.model));
  std::optional<Progress> progress;
  options.progress = [&](int64_t done, int64_t total) {
    if (!progress) progress.emplace(report, "operator", total);
    progress->reached(done);
  };
  HEDDLE_TRY(Net net, import_onnx(o.model, options));
  report.step(fmt::format("{} operators: checking and writing", net.nodes.size()));
  FileRoles of_data;  // known only after the import
  for (const std::filesystem::path& file : external) of_data.reads(file);
  HEDDLE_CHECK(writes_net(of_data, o.output));
  // Operators that no loaded plugin has are reported now, all of them, rather than when the net is run.
  HEDDLE_CHECK(resolve(net, plugins.snapshot(), options.limits).status(), fmt::format("while importing {}", quoted(o.model)));
  SaveOptions save;
  save.limits = options.limits;
  if (o.trainable) return save_imported_form(o, weights, std::move(net), plugins.snapshot(), save, report);
  HEDDLE_CHECK(save_net(net, o.output, save));
  report_net(net, o.output, report);
  return {};
}

Run declare_import(CLI::App& app) {
  auto o = std::make_shared<ImportArguments>();
  app.add_option("model", o->model, fmt::format("an ONNX model of opset {} to {}", importer::oldest_opset, importer::newest_opset))
      ->required()
      ->type_name("MODEL");
  app.add_option("-o,--output", o->output, "the net; weights go to NET.safetensors beside it")->required()->type_name("NET.heddle");
  const auto choose = [o](const std::vector<std::string>& patterns) {  // called without a pattern too
    o->trainable = true;
    o->weights.patterns = patterns;
  };
  app.add_option_function<std::vector<std::string>>(
         "--trainable", choose, "weights learn: those that match one of the patterns (* is any text), or all; needs --loss")
      ->type_name("PATTERN,...")
      ->expected(0, 1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--loss", o->loss,
                 "what learns: cross_entropy:LOGITS,LABELS, mse:OUTPUT,TARGET or bce:LOGITS,TARGET; the second is a new input")
      ->type_name("KIND:VALUE,INPUT");
  o->limits.declare(app);
  return [=](Report& report) { return report.finish_with(import_model(*o, report)); };
}

}  // namespace

const Command import_command = {
    "import", "ONNX model to net", "heddle import model.onnx -o model.heddle", declare_import, {{"import", {"net", "trainable"}}}};

}  // namespace heddle::tool
