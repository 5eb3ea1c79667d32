// model: a net from a recipe.
#include <fmt/format.h>

#include "base/text.h"
#include "commands/commands.h"
#include "common/written_net.h"
#include "load/save.h"
#include "models/recipes.h"

namespace heddle::tool {
namespace {

struct ModelArguments {
  std::string name, output, weights;
  models::RecipeOptions recipe;
  bool list = false, train = false;
};

Status write_model(const ModelArguments& o, Report& report) {
  if (o.list) {
    Json recipes = Json::array();
    for (const models::Recipe& r : models::list()) {
      recipes.push_back({{"name", r.name}, {"description", r.description}});
      report.say(fmt::format("{:15} {}", r.name, r.description));
    }
    report.json["recipes"] = recipes;
    return {};
  }
  if (o.train)
    return {Code::not_implemented, "--train: training forms of recipes do not work yet", "leave --train out for the inference form"};
  if (o.name.empty() || o.output.empty())
    return {Code::invalid_argument, "a recipe's name and -o NET.heddle are needed", "see heddle model --list"};
  FileRoles roles;
  HEDDLE_CHECK(writes_net(roles, o.output));
  if (!o.weights.empty()) HEDDLE_CHECK(roles.writes("--weights", o.weights));
  HEDDLE_TRY(const Net net, models::build(o.name, o.recipe));
  HEDDLE_CHECK(save_net(net, o.output));
  if (!o.weights.empty()) HEDDLE_CHECK(models::write_weights(net, o.weights));
  report_net(net, o.output, report);
  return {};
}

Run declare_model(CLI::App& app) {
  auto o = std::make_shared<ModelArguments>();
  app.add_option("name", o->name, "the recipe")->type_name("NAME");
  app.add_option("-o,--output", o->output, "the net")->type_name("NET.heddle");
  app.add_option("--batch", o->recipe.batch, "batch size")->check(CLI::PositiveNumber);
  app.add_option("--seed", o->recipe.seed, "of the weights")->check(whole_number());
  app.add_option("--weights", o->weights, "all parameters by name, for other frameworks")->type_name("FILE.safetensors");
  app.add_flag("--train", o->train, "the training form");
  app.add_flag("--list", o->list, "the recipes there are");
  return [o](Report& report) { return report.finish_with(write_model(*o, report)); };
}

}  // namespace

const Command model_command = {
    "model", "write a net from a recipe", "heddle model resnet50 -o resnet50.heddle", declare_model, {{"model", {"net", "recipes"}}}};

}  // namespace heddle::tool
