#include <fmt/format.h>

#include <filesystem>
#include <map>

#include "base/text.h"
#include "commands/commands.h"
#include "commands/inspect/inspect_plugin.h"
#include "common/limit_options.h"
#include "common/net_choice.h"
#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "load/load.h"
#include "models/recipes.h"
#include "plugin/operator_cost.h"
#include "plugin/registry.h"
#include "plugin/search.h"
#include "resolve/resolve.h"
#include "tensors/inputs.h"
#include "weights/safetensors.h"

namespace heddle::tool {
namespace {

struct InspectArguments {
  std::string file, only;
  bool stats = false, verify = false, dot = false;
  std::vector<std::string> shapes, symbols;
  NetChoice choice;
  LimitOptions limits;
};

struct NetCost {
  std::optional<double> flops;
  int64_t unknown = 0;  // operators that do not say
};

// Of one run of the net as it is written, without its subnets. Empty, with a note, when plugins, shapes or symbols that it needs are not
// given. Errors: those of the options.
Result<NetCost> cost_of(const Net& net, const InspectArguments& o, Report& report) {
  HEDDLE_TRY(const auto symbols, parse_symbols(o.symbols));
  std::vector<PortInfo> ports;
  for (const ValueId id : net.inputs) ports.push_back({net[id].name, net[id].type.dtype, {}, {}, false, false, 0});
  HEDDLE_TRY(const auto shapes, bind_shapes(ports, o.shapes));
  const auto cost = [&]() -> Result<NetCost> {
    Registry plugins;
    HEDDLE_CHECK(load_plugins(plugins, runtime_options(report.common)));
    const auto registry = plugins.snapshot();
    InferOptions options;
    HEDDLE_TRY(options.limits, o.limits.limits());
    HEDDLE_TRY(const Net resolved, resolve(net, registry, options.limits));
    const std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry);
    options.evaluator = evaluator.get();
    options.symbols = symbols;
    for (const TensorView& shape : shapes) options.inputs.push_back({{shape.dtype, shape.shape}, nullptr});
    HEDDLE_TRY(const TypedNet typed, infer(resolved, registry, options));
    NetCost sum = {0.0, 0};
    for (const Node& node : typed.net.nodes) {
      HEDDLE_TRY(const OperatorCost one, operator_cost(typed, node, AttributeTable(*node.schema, node.attributes)));
      *sum.flops += one.flops.value_or(0);
      sum.unknown += !one.flops;
    }
    return sum;
  }();
  if (cost.ok()) return *cost;
  Diagnostic note = cost.status().diagnostic();
  note.severity = Severity::note;
  note.message = fmt::format("flops are not known: {}", note.message);
  for (Diagnostic& other : note.attached) other.severity = Severity::note;
  report.diagnose(note);
  return NetCost();
}

std::string type_text(const DeclaredType& type) {
  if (type.dtype == DType::none) return "?";  // inferred when it is run
  std::string out = to_string(type.dtype);
  if (!type.ranked) return out;
  std::vector<std::string> dims;
  for (const Dim& d : type.dims)
    dims.push_back(d.kind == Dim::Kind::symbol    ? word(d.symbol)
                   : d.kind == Dim::Kind::dynamic ? "?"
                                                  : fmt::format("{}{}", d.kind == Dim::Kind::bounded ? "<=" : "", d.value));
  return fmt::format("{}[{}]", out, join(dims, ", "));
}

std::string names_of(const Net& net, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(id.valid() ? quoted(net[id].name) : "-");
  return join(names, ", ");
}

Status describe_net(const Net& net, const InspectArguments& o, Report& report) {
  int64_t constant_bytes = 0;
  for (const Value& v : net.values)
    if (v.content.blob) constant_bytes += v.content.blob->bytes;
  report.json["net"] = {{"name", net.name},
                        {"operators", net.nodes.size()},
                        {"values", net.values.size()},
                        {"variables", net.variables.size()},
                        {"inputs", net.inputs.size()},
                        {"outputs", net.outputs.size()}};
  report.say(fmt::format("net {}: {} operators, {} variables", quoted(net.name), net.nodes.size(), net.variables.size()));
  for (const ValueId id : net.inputs) report.say(fmt::format("  input  {} {}", quoted(net[id].name), type_text(net[id].type)));
  for (const ValueId id : net.outputs) report.say(fmt::format("  output {} {}", quoted(net[id].name), type_text(net[id].type)));
  if (o.stats) {
    std::map<std::string, int64_t> types;
    for (const Node& n : net.nodes) ++types[display_name(n.domain, n.type)];
    Json by_type = Json::object();
    for (const auto& [type, count] : types) {
      by_type[type] = count;
      report.say(fmt::format("  {} x {}", count, word(type)));
    }
    HEDDLE_TRY(const NetCost cost, cost_of(net, o, report));
    report.json["stats"] = {{"operators_by_type", by_type},
                            {"parameters", models::parameter_count(net)},
                            {"constant_bytes", constant_bytes},
                            {"flops", cost.flops ? Json(*cost.flops) : Json(nullptr)},
                            {"operators_without_flops", cost.flops ? Json(cost.unknown) : Json(nullptr)}};
    report.say(fmt::format("  parameters {}, constants {}", models::parameter_count(net), human_bytes(constant_bytes)));
    if (cost.flops)
      report.say(cost.unknown > 0
                     ? fmt::format("  flops {}, not counting {} operators that declare no cost", shortest(*cost.flops), cost.unknown)
                     : fmt::format("  flops {}", shortest(*cost.flops)));
    return {};
  }
  for (const Node& n : net.nodes)
    report.say(fmt::format("  {} = {}({}){}", names_of(net, n.outputs), word(display_name(n.domain, n.type)), names_of(net, n.inputs),
                           n.device.empty() ? "" : fmt::format(" on {}", word(n.device))));
  return {};
}

std::string net_dot(const Net& net) {
  std::string out = fmt::format("digraph {} {{\n  node [shape=box];\n", quoted(net.name.empty() ? "net" : net.name));
  for (size_t i = 0; i < net.nodes.size(); ++i)
    out += fmt::format("  n{} [label={}];\n", i, quoted(fmt::format("{} ({})", net.nodes[i].name, net.nodes[i].type)));
  for (size_t i = 0; i < net.nodes.size(); ++i)
    for (const ValueId id : net.nodes[i].inputs)
      if (id.valid() && net[id].producer.valid())
        out += fmt::format("  n{} -> n{} [label={}];\n", net[id].producer.index, i, quoted(net[id].name));
  return out + "}\n";
}

Status inspect_weights(const InspectArguments& o, Report& report) {
  const std::filesystem::path path(o.file);
  HEDDLE_TRY(const Limits limits, o.limits.limits());
  HEDDLE_TRY(const Safetensors tensors,
             Safetensors::open(path.parent_path().empty() ? "." : path.parent_path(), path.filename().string(), limits));
  Json list = Json::array();
  for (const TensorEntry& e : tensors.tensors()) {
    Json shape = Json::array();
    for (const int64_t d : e.shape) shape.push_back(d);
    Json row = {{"name", e.name}, {"dtype", e.file_dtype}, {"shape", shape}, {"bytes", e.bytes}, {"xxh64", nullptr}};
    std::string line = fmt::format("{} {}{} {}", quoted(e.name), word(e.file_dtype), e.shape.text(), human_bytes(e.bytes));
    if (o.verify) {
      HEDDLE_TRY(const uint64_t sum, tensors.checksum_of(e));
      if (e.checksum && *e.checksum != sum)
        return {Code::weights_mismatch,
                fmt::format("tensor {} of {} has the checksum {}, the file says {}", quoted(e.name), quoted(o.file), hex(sum),
                            hex(*e.checksum)),
                "the file is damaged: fetch or write it again"};
      row["xxh64"] = fmt::to_string(sum);
      line += fmt::format(" xxh64 {}", sum);
    }
    list.push_back(row);
    report.say(line);
  }
  report.json["tensors"] = list;
  if (!tensors.identity().known()) return {};
  report.json["identity"] = tensors.identity().text();
  report.say(fmt::format("identity {}", tensors.identity().text()));
  return {};
}

Status inspect(const InspectArguments& o, Report& report) {
  const std::string extension = std::filesystem::path(o.file).extension().string();
  if (extension == ".safetensors") return inspect_weights(o, report);
  if (extension == ".so") return inspect_plugin(o.file, o.only, report);
  LoadOptions load;
  load.verify_checksums = o.verify;
  HEDDLE_TRY(load.limits, o.limits.limits());
  HEDDLE_TRY(const Net net, o.choice.load(o.file, load));
  if (o.dot) {
    report.json["dot"] = net_dot(net);
    report.print(net_dot(net));
  } else {
    HEDDLE_CHECK(describe_net(net, o, report));
  }
  if (o.verify) report.say("checksums agree");
  return {};
}

Run declare_inspect(CLI::App& app) {
  auto o = std::make_shared<InspectArguments>();
  app.add_option("file", o->file, "a net, .safetensors file or plugin")->required()->type_name("FILE");
  o->choice.declare(app);
  app.add_flag("--stats", o->stats, "operators by type, parameters, bytes, flops");
  app.add_option("--shape", o->shapes, "shape of an input, for flops")->type_name("NAME=2x3x224x224")->needs("--stats");
  app.add_option("--symbol", o->symbols, "extent of a symbolic dimension, for flops")->type_name("N=8")->needs("--stats");
  app.add_flag("--verify", o->verify, "check every checksum");
  app.add_flag("--dot", o->dot, "Graphviz");
  app.add_option("--operator", o->only, "of a plugin: this operator alone")->type_name("NAME");
  o->limits.declare(app);
  return [o](Report& report) { return report.finish_with(inspect(*o, report)); };
}

}  // namespace

const Command inspect_command = {"inspect",
                                 "a net, weights or plugin, readable",
                                 "heddle inspect resnet50.heddle --stats",
                                 declare_inspect,
                                 {{"inspect", {"net", "stats", "tensors", "identity", "plugin", "dot"}}}};

}  // namespace heddle::tool
