#include "commands/inspect/inspect_net.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>

#include "base/text/text.h"
#include "commands/inspect/output_dims.h"
#include "infer/infer.h"
#include "infer/registry_evaluator.h"
#include "models/recipes.h"
#include "plugin/operator_cost.h"
#include "plugin/registry.h"
#include "plugin/search.h"
#include "resolve/resolve.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

struct NetCost {
  std::optional<double> flops;
  int64_t unknown = 0;  // operators that do not declare their cost
};

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

// A dim is a number, a symbol, or null where it is neither.
Json port_json(const std::string& name, const DeclaredType& type) {
  Json shape = Json::array();
  for (const Dim& d : type.dims)
    shape.push_back(d.kind == Dim::Kind::symbol ? Json(d.symbol) : d.kind == Dim::Kind::constant ? Json(d.value) : Json(nullptr));
  return {{"name", name},
          {"dtype", type.dtype == DType::none ? Json(nullptr) : Json(to_string(type.dtype))},
          {"shape", type.ranked ? shape : Json(nullptr)}};
}

std::string names_of(const Net& net, const std::vector<ValueId>& ids) {
  std::vector<std::string> names;
  for (const ValueId id : ids) names.push_back(id.valid() ? quoted(net[id].name) : "-");
  return join(names, ", ");
}

class NetInspection {
 public:
  NetInspection(const NetQuestions& questions, Report& report) : q_(questions), report_(report) {}
  Status load() {
    HEDDLE_TRY(limits_, q_.limits.limits());
    Registry plugins;
    // Without its plugins a net is shown as it is written.
    plugins_ = load_plugins(plugins, runtime_options(report_.common));
    registry_ = plugins.snapshot();
    return {};
  }
  // Returns the entry for the net in the object's "nets".
  Result<Json> describe(const Net& net);
  void list_operators(const Net& net) const;

 private:
  Result<NetCost> cost(const Net& net);
  Result<Json> stats(const Net& net);
  // Reports once for each net why a question has no answer: what prevents one answer often prevents others.
  void note(const std::string& unknown, const Status& why);
  std::vector<DeclaredType> types_of_outputs(const Net& net);

  const NetQuestions& q_;
  Report& report_;
  Limits limits_;
  Status plugins_;
  std::shared_ptr<const RegistrySnapshot> registry_;
};

void NetInspection::note(const std::string& unknown, const Status& why) {
  Diagnostic note = why.diagnostic();
  note.severity = Severity::note;
  note.message = fmt::format("{} are not known: {}", unknown, note.message);
  for (Diagnostic& other : note.attached) other.severity = Severity::note;
  report_.diagnose(note);
}

// The types as inference finds them; else, with a note, as they are declared.
std::vector<DeclaredType> NetInspection::types_of_outputs(const Net& net) {
  const Result<std::vector<DeclaredType>> types =
      plugins_.ok() ? output_types(net, registry_, limits_) : Result<std::vector<DeclaredType>>(plugins_);
  if (types.ok()) return *types;
  std::vector<DeclaredType> declared;
  bool all_known = true;
  for (const ValueId id : net.outputs) {
    declared.push_back(net[id].type);
    all_known = all_known && declared.back().ranked;
  }
  if (!all_known && !q_.stats) note("dims of outputs", types.status());  // for flops a note reports the same
  return declared;
}

// The cost of one run of the net as it is written, without its subnets. Empty, with a note, when plugins, shapes or symbols that it needs
// are not given. Errors: those of the options.
Result<NetCost> NetInspection::cost(const Net& net) {
  HEDDLE_TRY(const auto symbols, parse_symbols(q_.symbols));
  std::vector<PortInfo> ports;
  for (const ValueId id : net.inputs) ports.push_back({net[id].name, net[id].type.dtype, {}, {}, false, false, 0});
  HEDDLE_TRY(const auto shapes, bind_shapes(ports, q_.shapes));
  const auto cost = [&]() -> Result<NetCost> {
    HEDDLE_CHECK(plugins_);
    InferOptions options;
    options.limits = limits_;
    HEDDLE_TRY(const Net resolved, resolve(net, registry_, options.limits));
    const std::unique_ptr<Evaluator> evaluator = make_registry_evaluator(registry_);
    options.evaluator = evaluator.get();
    options.symbols = symbols;
    for (const TensorView& shape : shapes) options.inputs.push_back({{shape.dtype, shape.shape}, nullptr});
    HEDDLE_TRY(const TypedNet typed, infer(resolved, registry_, options));
    NetCost sum = {0.0, 0};
    for (const Node& node : typed.net.nodes) {
      HEDDLE_TRY(const OperatorCost one, operator_cost(typed, node, AttributeTable(*node.schema, node.attributes)));
      *sum.flops += one.flops.value_or(0);
      sum.unknown += !one.flops;
    }
    return sum;
  }();
  if (cost.ok()) return *cost;
  note("flops", cost.status());
  return NetCost();
}

Result<Json> NetInspection::stats(const Net& net) {
  int64_t constant_bytes = 0;
  for (const Value& v : net.values)
    if (v.content.blob) constant_bytes += v.content.blob->bytes;
  std::map<std::string, int64_t> types;
  for (const Node& n : net.nodes) ++types[display_name(n.domain, n.type)];
  Json by_type = Json::object();
  for (const auto& [type, count] : types) {
    by_type[type] = count;
    report_.say(fmt::format("  {} x {}", count, word(type)));
  }
  HEDDLE_TRY(const NetCost sum, cost(net));
  report_.say(fmt::format("  parameters {}, constants {}", models::parameter_count(net), human_bytes(constant_bytes)));
  if (sum.flops)
    report_.say(sum.unknown > 0
                    ? fmt::format("  flops {}, not counting {} operators that declare no cost", shortest(*sum.flops), sum.unknown)
                    : fmt::format("  flops {}", shortest(*sum.flops)));
  return Json({{"operators_by_type", by_type},
               {"parameters", models::parameter_count(net)},
               {"constant_bytes", constant_bytes},
               {"flops", sum.flops ? Json(*sum.flops) : Json(nullptr)},
               {"operators_without_flops", sum.flops ? Json(sum.unknown) : Json(nullptr)}});
}

Result<Json> NetInspection::describe(const Net& net) {
  const std::vector<DeclaredType> types = types_of_outputs(net);
  Json inputs = Json::array(), outputs = Json::array();
  report_.say(fmt::format("net {}: {} operators, {} variables", quoted(net.name), net.nodes.size(), net.variables.size()));
  for (const ValueId id : net.inputs) {
    inputs.push_back(port_json(net[id].name, net[id].type));
    report_.say(fmt::format("  input  {} {}", quoted(net[id].name), type_text(net[id].type)));
  }
  for (size_t i = 0; i < net.outputs.size(); ++i) {
    const std::string& name = net[net.outputs[i]].name;
    outputs.push_back(port_json(name, types[i]));
    report_.say(fmt::format("  output {} {}", quoted(name), type_text(types[i])));
  }
  Json of_stats;
  if (q_.stats) {
    HEDDLE_TRY(of_stats, stats(net));
  }
  return Json({{"name", net.name},
               {"operators", net.nodes.size()},
               {"values", net.values.size()},
               {"variables", net.variables.size()},
               {"inputs", inputs},
               {"outputs", outputs},
               {"stats", of_stats}});
}

void NetInspection::list_operators(const Net& net) const {
  for (const Node& n : net.nodes)
    report_.say(fmt::format("  {} = {}({}){}", names_of(net, n.outputs), word(display_name(n.domain, n.type)), names_of(net, n.inputs),
                            n.device.empty() ? "" : fmt::format(" on {}", word(n.device))));
}

}  // namespace

Status describe_nets(const std::vector<Net>& nets, const NetQuestions& questions, Report& report) {
  NetInspection inspection(questions, report);
  HEDDLE_CHECK(inspection.load());
  report.json["nets"] = Json::array();
  for (const Net& net : nets) {
    HEDDLE_TRY(Json told, inspection.describe(net));
    report.json["nets"].push_back(std::move(told));
  }
  if (nets.size() > 1) {
    report.say("with --net NAME one of them with its operators");
    return {};
  }
  const Json& one = report.json["nets"][0];
  report.json["net"] = {{"name", one["name"]},           {"operators", one["operators"]},  {"values", one["values"]},
                        {"variables", one["variables"]}, {"inputs", one["inputs"].size()}, {"outputs", one["outputs"].size()}};
  report.json["stats"] = one["stats"];
  if (!questions.stats) inspection.list_operators(nets[0]);
  return {};
}

}  // namespace heddle::tool
