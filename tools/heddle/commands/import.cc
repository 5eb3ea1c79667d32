// import: an ONNX model becomes a net.
#include "onnx/import.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/text/text.h"
#include "commands/commands.h"
#include "common/written_net.h"
#include "load/save.h"
#include "onnx/operators/operators.h"
#include "options/limit_options.h"
#include "plugin/search.h"
#include "resolve/resolve.h"

namespace heddle::tool {
namespace {

Status import_model(const std::string& model, const std::string& output, const LimitOptions& limits, Report& report) {
  Registry plugins;
  HEDDLE_CHECK(load_plugins(plugins, runtime_options(report.common)));
  ImportOptions import;
  HEDDLE_TRY(import.limits, limits.limits());
  FileRoles roles;
  roles.reads(model);
  HEDDLE_CHECK(writes_net(roles, output));
  std::vector<std::filesystem::path> external;
  import.files_read = &external;
  HEDDLE_TRY(const Net net, import_onnx(model, import));
  FileRoles of_data;  // known only after the import
  for (const std::filesystem::path& file : external) of_data.reads(file);
  HEDDLE_CHECK(writes_net(of_data, output));
  // Operators that no loaded plugin has are reported now, all of them, rather than when the net is run.
  HEDDLE_CHECK(resolve(net, plugins.snapshot(), import.limits).status(), fmt::format("while importing {}", quoted(model)));
  SaveOptions save;
  save.limits = import.limits;
  HEDDLE_CHECK(save_net(net, output, save));
  report_net(net, output, report);
  return {};
}

Run declare_import(CLI::App& app) {
  auto model = std::make_shared<std::string>(), output = std::make_shared<std::string>();
  app.add_option("model", *model, fmt::format("an ONNX model of opset {} to {}", importer::oldest_opset, importer::newest_opset))
      ->required()
      ->type_name("MODEL");
  app.add_option("-o,--output", *output, "the net; weights go to NET.safetensors beside it")->required()->type_name("NET.heddle");
  auto limits = std::make_shared<LimitOptions>();
  limits->declare(app);
  return [=](Report& report) { return report.finish_with(import_model(*model, *output, *limits, report)); };
}

}  // namespace

const Command import_command = {
    "import", "ONNX model to net", "heddle import model.onnx -o model.heddle", declare_import, {{"import", {"net"}}}};

}  // namespace heddle::tool
