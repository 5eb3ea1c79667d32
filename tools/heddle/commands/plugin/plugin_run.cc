// heddle plugin run OP: one operator on given or random inputs.
#include <fmt/format.h>

#include "base/text/text.h"
#include "commands/plugin/call_arguments.h"
#include "commands/plugin/plugin_commands.h"
#include "commands/plugin/session_host.h"
#include "operator_runner/operator_runner.h"
#include "plugin/search.h"
#include "resolve/rule_reader.h"
#include "tensors/tensor_files.h"

namespace heddle::tool {
namespace {

struct OperatorArguments {
  std::string name;
  CallArguments call;
  uint64_t seed = 1;
};

Status run_one(const OperatorArguments& o, Report& report) {
  Registry plugins(read_rewrite_rule);
  HEDDLE_CHECK(load_plugins(plugins, runtime_options(report.common)));
  const auto registry = plugins.snapshot();
  const size_t colon = o.name.find("::");
  const std::string domain = colon == std::string::npos ? "" : o.name.substr(0, colon);
  const std::string type = colon == std::string::npos ? o.name : o.name.substr(colon + 2);
  const OperatorSchema* schema = registry->find_operator(domain, type);
  if (!schema)
    return {Code::unknown_operator, fmt::format("no loaded plugin has operator {}", quoted(o.name)),
            suggestion(type, registry->operator_names(domain))};
  HEDDLE_TRY(Example said, parse_call(*schema, o.call, o.seed));
  OperatorCall& call = said.call;
  if (call.output_count == 0) call.output_count = 1;
  SessionHost host(registry, [&] { return make_runtime(report.common); });
  call.host = &host;
  HEDDLE_TRY(const auto outputs, run_operator(*registry, call));
  Json list = Json::array();
  for (const auto& blob : outputs) {
    const TensorView view{blob->dtype, blob->shape, const_cast<std::byte*>(blob->data)};
    report.say_lines(tensor_text(view));
    Json shape = Json::array();
    for (const int64_t d : blob->shape) shape.push_back(d);
    list.push_back(
        {{"dtype", to_string(blob->dtype)}, {"shape", shape}, {"sha256", sha256_hex(blob->data, static_cast<size_t>(blob->bytes))}});
  }
  report.json["outputs"] = list;
  return {};
}

}  // namespace

Run declare_plugin_run(CLI::App& app) {
  auto o = std::make_shared<OperatorArguments>();
  app.add_option("operator", o->name, "Name, or domain::Name")->required()->type_name("OP");
  add_call_options(app, o->call);
  app.add_option("--seed", o->seed, "of random inputs")->check(whole_number());
  return [o](Report& report) { return report.finish_with(run_one(*o, report)); };
}

}  // namespace heddle::tool
