// import, convert and model: commands that write nets.
#include <filesystem>

#include "base/text.h"
#include "common/command.h"
#include "common/file_roles.h"
#include "common/limit_options.h"
#include "load/load.h"
#include "load/save.h"
#include "models/recipes.h"
#include "onnx/import.h"
#include "resolve/resolve.h"
#include "session/session_impl.h"
#include "weights/record_checksums.h"

namespace heddle::tool {
namespace {

Json net_summary(const Net& net, const std::string& file) {
  return {{"file", file},
          {"operators", net.nodes.size()},
          {"inputs", net.inputs.size()},
          {"outputs", net.outputs.size()},
          {"parameters", models::parameter_count(net)}};
}

// The net and the weights beside it.
Status writes_net(FileRoles& roles, const std::string& output) {
  HEDDLE_CHECK(roles.writes("the net", output));
  return roles.writes("the weights of the net", weights_path(output));
}

Status import_model(const std::string& model, const std::string& output, const LimitOptions& limits, Report& report) {
  HEDDLE_TRY(const Runtime runtime, make_runtime(report.common));
  ImportOptions import;
  HEDDLE_TRY(import.limits, limits.limits());
  FileRoles roles;
  roles.reads(model);
  HEDDLE_CHECK(writes_net(roles, output));
  std::vector<std::filesystem::path> external;
  import.files_read = &external;
  HEDDLE_TRY(const Net net, import_onnx(model, import));
  FileRoles of_data;  // known only now
  for (const std::filesystem::path& file : external) of_data.reads(file);
  HEDDLE_CHECK(writes_net(of_data, output));
  // Operators that no loaded plugin has are named now, all of them, rather than when the net is run.
  HEDDLE_CHECK(resolve(net, runtime.impl().registry.snapshot(), import.limits).status(), "while importing " + quoted(model));
  SaveOptions save;
  save.limits = import.limits;
  HEDDLE_CHECK(save_net(net, output, save));
  report.json["net"] = net_summary(net, output);
  report.say(quoted(output) + ": " + std::to_string(net.nodes.size()) + " operators, " + std::to_string(models::parameter_count(net)) +
             " parameters");
  return {};
}

Status convert(const std::string& from, const std::string& to, const LimitOptions& limits, Report& report) {
  std::error_code error;
  const auto folder = [&](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file), error).parent_path();
  };
  const bool same_folder = folder(from) == folder(to);
  LoadOptions load;
  HEDDLE_TRY(load.limits, limits.limits());
  load.attach_weights = !same_folder;
  HEDDLE_TRY(Net net, load_net(from, load));
  if (same_folder) HEDDLE_CHECK(record_checksums(net, folder(from), load.limits));
  FileRoles roles;
  roles.reads_net(from, net);
  HEDDLE_CHECK(roles.writes("the net", to));
  // In one folder the weights stay as they are; both nets refer to them.
  if (!same_folder) HEDDLE_CHECK(roles.writes("the weights of the net", weights_path(to)));
  SaveOptions save;
  save.limits = load.limits;
  save.keep_references = same_folder;
  HEDDLE_CHECK(save_net(net, to, save));
  report.json["net"] = {{"file", to}, {"operators", net.nodes.size()}};
  report.say(quoted(from) + " -> " + quoted(to) + ": " + std::to_string(net.nodes.size()) + " operators");
  return {};
}

struct ModelOptions {
  std::string name, output, weights;
  models::RecipeOptions recipe;
  bool list = false, train = false;
};

Status write_model(const ModelOptions& o, Report& report) {
  if (o.list) {
    Json recipes = Json::array();
    for (const models::Recipe& r : models::list()) {
      recipes.push_back({{"name", r.name}, {"description", r.description}});
      report.say(std::string(r.name) + std::string(std::max<int>(1, 16 - static_cast<int>(std::string(r.name).size())), ' ') +
                 r.description);
    }
    report.json["recipes"] = recipes;
    return {};
  }
  if (o.train)
    return {Code::unsupported, "--train: training forms of recipes are not implemented", "leave --train out for the inference form"};
  if (o.name.empty() || o.output.empty())
    return {Code::invalid_argument, "a recipe's name and -o NET.heddle are needed", "see heddle model --list"};
  FileRoles roles;
  HEDDLE_CHECK(writes_net(roles, o.output));
  if (!o.weights.empty()) HEDDLE_CHECK(roles.writes("--weights", o.weights));
  HEDDLE_TRY(const Net net, models::build(o.name, o.recipe));
  HEDDLE_CHECK(save_net(net, o.output));
  if (!o.weights.empty()) HEDDLE_CHECK(models::write_weights(net, o.weights));
  report.json["net"] = net_summary(net, o.output);
  report.say(quoted(o.output) + ": " + std::to_string(net.nodes.size()) + " operators, " + std::to_string(models::parameter_count(net)) +
             " parameters");
  return {};
}

int finish(Report& report, const Status& status) {
  return status.ok() ? 0 : report.fail(status);
}

}  // namespace

Run declare_import(CLI::App& app) {
  auto model = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  app.add_option("model", *model, "an ONNX model")->required()->type_name("MODEL");
  app.add_option("-o,--output", *output, "the net; weights go to NET.safetensors beside it")->required()->type_name("NET.heddle");
  auto limits = std::make_shared<LimitOptions>();
  limits->declare(app);
  return [=](Report& report) { return finish(report, import_model(*model, *output, *limits, report)); };
}

Run declare_convert(CLI::App& app) {
  auto from = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  app.add_option("from", *from, "a .heddle or .json file")->required()->type_name("A");
  app.add_option("to", *to, "a .heddle or .json file")->required()->type_name("B");
  auto limits = std::make_shared<LimitOptions>();
  limits->declare(app);
  return [=](Report& report) { return finish(report, convert(*from, *to, *limits, report)); };
}

Run declare_model(CLI::App& app) {
  auto o = std::make_shared<ModelOptions>();
  app.add_option("name", o->name, "the recipe")->type_name("NAME");
  app.add_option("-o,--output", o->output, "the net")->type_name("NET.heddle");
  app.add_option("--batch", o->recipe.batch, "batch size")->check(CLI::PositiveNumber);
  app.add_option("--seed", o->recipe.seed, "of the weights")->check(whole_number());
  app.add_option("--weights", o->weights, "all parameters by name, for other frameworks")->type_name("FILE.safetensors");
  app.add_flag("--train", o->train, "the training form");
  app.add_flag("--list", o->list, "the recipes there are");
  return [o](Report& report) { return finish(report, write_model(*o, report)); };
}

}  // namespace heddle::tool
