// convert: between .heddle and .json, losslessly.
#include <fmt/format.h>

#include <filesystem>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/written_net.h"
#include "load/load.h"
#include "load/save.h"
#include "options/limit_options.h"
#include "options/net_choice.h"
#include "weights/record_checksums.h"
#include "weights/referenced_files.h"

namespace heddle::tool {
namespace {

Status convert(const std::string& from, const std::string& to, const LimitOptions& limits, Report& report) {
  std::error_code error;
  const auto folder = [&](const std::string& file) {
    return std::filesystem::weakly_canonical(std::filesystem::absolute(file), error).parent_path();
  };
  const bool same_folder = folder(from) == folder(to);
  LoadOptions load;
  HEDDLE_TRY(load.limits, limits.limits());
  load.attach_weights = !same_folder;
  HEDDLE_TRY(std::vector<Net> nets, load_nets_of(from, load));
  FileRoles roles;
  roles.reads(from);
  size_t operators = 0;
  for (Net& net : nets) {
    if (same_folder) HEDDLE_CHECK(record_checksums(net, folder(from), load.limits));
    for (const std::string& weights : referenced_files(net)) roles.reads(std::filesystem::path(from).parent_path() / weights);
    operators += net.nodes.size();
  }
  HEDDLE_CHECK(roles.writes("the net", to));
  // In one folder the weights stay as they are; both nets refer to them.
  if (!same_folder) HEDDLE_CHECK(roles.writes("the weights of the net", weights_path(to)));
  SaveOptions save;
  save.limits = load.limits;
  save.keep_references = same_folder;
  HEDDLE_CHECK(save_nets(nets, to, save));
  report.json["net"] = {{"file", to}, {"operators", operators}};
  report.say(fmt::format("{} -> {}: {} operators", quoted(from), quoted(to), operators));
  return {};
}

Run declare_convert(CLI::App& app) {
  auto from = std::make_shared<std::string>(), to = std::make_shared<std::string>();
  app.add_option("from", *from, "a .heddle or .json file")->required()->type_name("A");
  app.add_option("to", *to, "a .heddle or .json file")->required()->type_name("B");
  auto limits = std::make_shared<LimitOptions>();
  limits->declare(app);
  return [=](Report& report) { return report.finish_with(convert(*from, *to, *limits, report)); };
}

}  // namespace

const Command convert_command = {
    "convert", "between .heddle and .json, losslessly", "heddle convert net.heddle net.json", declare_convert, {{"convert", {"net"}}}};

}  // namespace heddle::tool
