// model: a net from a recipe.
#include <fmt/format.h>

#include <optional>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/written_net.h"
#include "load/save.h"
#include "models/recipes.h"
#include "models/training_form.h"
#include "options/training_flags.h"

namespace heddle::tool {
namespace {

struct ModelArguments {
  std::string name, output, weights;
  models::RecipeOptions recipe;
  TrainingFlags training;
  std::optional<int64_t> batch;
  bool list = false, train = false, loss = false;
};

// Two nets over the same variables: one that learns, or has a loss alone, and one that tests.
Status save_training_form(const ModelArguments& o, Report& report) {
  HEDDLE_TRY(models::TrainingForm form, models::training_form(o.name, o.recipe));
  std::vector<Net> nets;
  HEDDLE_TRY(Net trains, o.loss ? Result<Net>(std::move(form.train)) : o.training.learning(form.train, "loss", report.common));
  if (o.batch)
    for (const ValueId input : trains.inputs) trains[input].type.dims[0] = Dim::of(*o.batch);
  nets.push_back(std::move(trains));
  nets.push_back(std::move(form.test));
  HEDDLE_CHECK(save_nets(nets, o.output));
  report_training_form(nets[0], nets[1], form.parameters, o.output, report);
  return {};
}

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
  if (!o.train) HEDDLE_CHECK(o.training.check_not_given("without --train nothing learns"));
  if (!o.train && o.training.ranks > 1)
    return {Code::invalid_argument, "--ranks: without --train nothing learns", "leave it out, or make a training form with --train"};
  if (o.name.empty() || o.output.empty())
    return {Code::invalid_argument, "a recipe's name and -o NET.heddle are needed", "see heddle model --list"};
  FileRoles roles;
  HEDDLE_CHECK(writes_net(roles, o.output));
  if (!o.weights.empty()) HEDDLE_CHECK(roles.writes("--weights", o.weights));
  models::RecipeOptions recipe = o.recipe;
  if (o.batch) recipe.batch = *o.batch;
  if (o.train || o.loss) recipe.purpose = models::Purpose::training;
  HEDDLE_TRY(const Net net, models::build(o.name, recipe));
  if (!o.weights.empty()) HEDDLE_CHECK(models::write_weights(net, o.weights));
  if (o.train || o.loss) return save_training_form(o, report);
  HEDDLE_CHECK(save_net(net, o.output));
  report_net(net, o.output, report);
  return {};
}

Run declare_model(CLI::App& app) {
  auto o = std::make_shared<ModelArguments>();
  app.add_option("name", o->name, "the recipe")->type_name("NAME");
  app.add_option("-o,--output", o->output, "the net")->type_name("NET.heddle");
  app.add_option("--batch", o->batch, "batch size; of training forms any, unless it is given")->check(whole_number(INT64_MAX, 1));
  app.add_option("--seed", o->recipe.seed, "of the weights")->check(whole_number());
  app.add_option("--weights", o->weights, "all parameters by name, for other frameworks")->type_name("FILE.safetensors");
  app.add_flag("--train", o->train, "the training form: nets \"train\", which learns, and \"test\", of any batch");
  app.add_flag("--loss", o->loss, "the training form before it learns, for heddle train with options: \"train\" has a loss alone")
      ->excludes("--train");
  o->training.declare(app);
  app.add_option("--ranks", o->training.ranks, "the training form for so many processes, each with its part of the batch")
      ->type_name("N")
      ->check(whole_number(INT32_MAX, 1));
  app.add_flag("--list", o->list, "the recipes there are");
  return [o](Report& report) { return report.finish_with(write_model(*o, report)); };
}

}  // namespace

const Command model_command = {
    "model", "write a net from a recipe", "heddle model resnet50 -o resnet50.heddle", declare_model, {{"model", {"net", "recipes"}}}};

}  // namespace heddle::tool
