// predictor: the part of a training net that predicts.
#include "derive/predictor/predictor.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/device_name.h"
#include "base/text/text.h"
#include "commands/commands.h"
#include "common/written_net.h"
#include "load/load.h"
#include "load/save.h"
#include "net/averages.h"
#include "options/limit_options.h"
#include "options/net_choice.h"
#include "state/checkpoint_file.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

struct PredictorArguments {
  std::string file, net, output, device, checkpoint;
  std::vector<std::string> rename;
  PredictorOptions options;
  LimitOptions limits;
};

// Returns the file of --checkpoint: of a folder the newest.
Result<std::string> checkpoint_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return path;
  HEDDLE_TRY(const CheckpointList list, list_checkpoints(path));
  if (!list.complete.empty()) return list.complete[0].path;
  return Status(Code::file_not_found, fmt::format("--checkpoint: {} has no complete checkpoint", quoted(path)), "see heddle inspect");
}

Status extract(PredictorArguments& o, Report& report) {
  HEDDLE_TRY(o.options.rename, split_name_values("--rename", o.rename));
  if (!o.device.empty()) o.options.device = full_device_name(o.device, "");
  LoadOptions load;
  HEDDLE_TRY(load.limits, o.limits.limits());
  FileRoles roles;
  roles.reads(o.file);
  if (!o.checkpoint.empty()) roles.reads(o.checkpoint);
  HEDDLE_CHECK(writes_net(roles, o.output));
  HEDDLE_TRY(std::vector<Net> nets, load_nets_of(o.file, load));
  if (!o.checkpoint.empty()) {
    HEDDLE_TRY(const std::string file, checkpoint_file(o.checkpoint));
    HEDDLE_CHECK(take_checkpoint(nets, file, load.limits));
  }
  const Net* chosen = o.net.empty() ? &nets[0] : nullptr;
  for (const Net& net : nets)
    if (net.name == o.net) chosen = &net;
  if (!chosen)
    return {Code::unknown_name, fmt::format("{} has no net {}", quoted(o.file), quoted(o.net)), "choose one of its nets with --net NAME"};
  HEDDLE_TRY(Net made, predictor(*chosen, o.options));
  int64_t averages = 0;
  if (o.options.average) {
    HEDDLE_TRY(averages, take_averages(made, nets));
  }
  SaveOptions save;
  save.limits = load.limits;
  HEDDLE_CHECK(save_net(made, o.output, save));
  report_net(made, o.output, report);
  if (o.options.average) report.say(fmt::format("{} of {} variables are averages", averages, made.variables.size()));
  return {};
}

Run declare_predictor(CLI::App& app) {
  auto o = std::make_shared<PredictorArguments>();
  app.add_option("net", o->file, "a training net")->required()->type_name("NET");
  app.add_option("--net", o->net, "which net of a file that holds several; else the first")->type_name("NAME");
  app.add_option("--input", o->options.inputs, "what will be given; else the inputs that are needed")->type_name("NAME");
  app.add_option("--output", o->options.outputs, "what will be made")->required()->type_name("NAME");
  app.add_option("--rename", o->rename, "what an input or output is called")->type_name("NAME=NEW");
  app.add_option("--device", o->device, "where all of it runs; else each operator where it was trained")->type_name("DEVICE");
  app.add_flag("--average", o->options.average, "the averages that training kept in the place of the weights");
  app.add_option("--checkpoint", o->checkpoint, "what training learned until then; of a folder, the newest")
      ->type_name("FILE")
      ->check(not_empty());
  app.add_option("-o", o->output, "the net")->required()->type_name("PREDICTOR.heddle");
  o->limits.declare(app);
  return [o](Report& report) { return report.finish_with(extract(*o, report)); };
}

}  // namespace

const Command predictor_command = {"predictor",
                                   "the part of a training net that predicts",
                                   "heddle predictor trained.heddle --output logits -o predictor.heddle",
                                   declare_predictor,
                                   {{"predictor", {"net"}}}};

}  // namespace heddle::tool
