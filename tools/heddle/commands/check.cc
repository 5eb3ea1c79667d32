// check: all checks of a net that need no run.
#include <fmt/format.h>

#include "base/file.h"
#include "base/text/json_document.h"
#include "base/text/limit_names.h"
#include "base/text/text.h"
#include "commands/commands.h"
#include "common/standard_streams.h"
#include "heddle/session.h"
#include "load/load.h"
#include "options/net_options.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

// The exit status for the findings about a net: 3 when a file could not be read, 4 for limits alone, 2 when only an option is missing, 0
// when nothing is wrong, else 1. `readable`: the net's file is JSON, so that findings are about its content.
int status_of_findings(const std::vector<Diagnostic>& findings, bool readable) {
  bool file = false, limit = false, option = false, net = false;
  const auto count = [&](const Diagnostic& d) {
    if (d.severity != Severity::error) return;
    const bool of_the_file = d.code == Code::file_not_found || d.code == Code::file_unreadable || d.code == Code::file_truncated ||
                             d.code == Code::file_version || d.code == Code::weights_missing;
    const bool of_its_form = d.code == Code::syntax || d.code == Code::file_corrupt;
    if (of_the_file || (of_its_form && !readable))
      file = true;
    else if (exit_status(d.code) == 4)
      limit = true;
    else if (d.code == Code::unbound_symbol || d.code == Code::unknown_name || d.code == Code::missing_input)
      option = true;
    else
      net = true;
  };
  for (const Diagnostic& first : findings) {
    count(first);
    for (const Diagnostic& d : first.attached) count(d);
  }
  return file ? 3 : net ? 1 : limit ? 4 : option ? 2 : 0;
}

bool is_json(const std::string& file, const Limits& limits) {
  constexpr int depth = 100'000;  // of brackets: parsing uses no stack
  const auto parses = [](std::span<const std::byte> bytes) {
    return JsonDocument::parse({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, depth).ok();
  };
  if (is_stream(file)) {
    const auto bytes = stream_bytes(file, limits.file_bytes, "file_bytes");
    return bytes.ok() && parses(*bytes);
  }
  const auto bytes = read_file(file, limits.file_bytes);
  return bytes.ok() && parses(bytes->span());
}

// Binds the given shapes and contents of inputs; `blobs` keeps the contents.
Result<std::vector<TensorView>> bind_inputs(const std::vector<PortInfo>& inputs, const NetOptions& o, const Limits& limits,
                                            std::vector<std::shared_ptr<const Blob>>* blobs) {
  HEDDLE_TRY(std::vector<TensorView> bindings, bind_shapes(inputs, o.shapes));
  InputRequest request;
  request.files = o.files;
  request.shapes = o.shapes;
  request.symbols = o.symbols;
  request.limits = limits;
  HEDDLE_TRY(*blobs, read_inputs(inputs, request));
  for (size_t i = 0; i < blobs->size(); ++i)
    if (const Blob* blob = (*blobs)[i].get()) bindings[i] = {blob->dtype, blob->shape, const_cast<std::byte*>(blob->data)};
  return bindings;
}

int check(const NetOptions& o, Report& report) {
  const auto runtime = make_runtime(report.common);
  if (!runtime.ok()) return report.fail(runtime.status());
  const auto options = o.session_options();
  if (!options.ok()) return report.fail(options.status());
  for (const LimitEntry& limit : limit_table()) report.json["limits"][limit.name] = options->limits.*limit.value;
  LoadOptions load;
  load.limits = options->limits;
  Result<std::vector<Net>> nets = load_nets_of(o.net, load);
  const auto invalid = [&](const Status& status) {
    report.fail(status);
    return status_of_findings({status.diagnostic()}, is_json(o.net, options->limits));
  };
  if (!nets.ok()) return invalid(nets.status());
  size_t operators = 0;
  for (const Net& net : *nets) operators += net.nodes.size();
  report.json["operators"] = operators;
  const auto session = runtime->open(std::move(nets).value(), *options);
  if (!session.ok()) return invalid(session.status());
  std::vector<Diagnostic> findings;
  for (const std::string& name : o.choice.name.empty() ? session->nets() : std::vector<std::string>{o.choice.name}) {
    const auto net = session->net(name);
    if (!net.ok()) return report.fail(net.status());
    std::vector<std::shared_ptr<const Blob>> blobs;
    const auto inputs = bind_inputs(net->inputs(), o, options->limits, &blobs);
    if (!inputs.ok()) return report.fail(inputs.status());
    for (const Diagnostic& d : net->check(*inputs)) findings.push_back(d);
  }
  for (const Diagnostic& d : findings) report.diagnose(d);
  if (const int status = status_of_findings(findings, true); status != 0) return status;
  report.say(fmt::format("{}: {} operators, no errors", quoted(o.net), report.json["operators"].dump()));
  return 0;
}

Run declare_check(CLI::App& app) {
  auto o = std::make_shared<NetOptions>();
  app.add_option("net", o->net, "a .heddle or .json file")->required()->type_name("NET");
  o->declare(app);
  return [o](Report& report) { return check(*o, report); };
}

}  // namespace

const Command check_command = {
    "check", "everything that can be known without running", "heddle check net.json", declare_check, {{"check", {"operators", "limits"}}}};

}  // namespace heddle::tool
