#include "fuzz/net_case.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "fuzz/mutate.h"
#include "load/load.h"
#include "load/save.h"
#include "resolve/resolve.h"
#include "run/execution.h"
#include "session/pipeline.h"
#include "state/variables.h"

namespace heddle::fuzz {
namespace {

[[noreturn]] void broken(const char* what, const Status& status) {
  std::fprintf(stderr, "%s: %s\n", what, status.text().c_str());
  std::abort();
}

void check_round_trip(const Net& net, const LoadOptions& options) {
  const auto bytes = net_to_bytes(net, options.limits);
  if (!bytes.ok()) broken("a net that was loaded can't be written", bytes.status());
  const auto text = net_to_json(net, options.limits);
  if (!text.ok()) broken("a net that was loaded can't be written as text", text.status());
  if (static_cast<int64_t>(text->size()) > options.limits.file_bytes) return;
  const auto reread = load_net_bytes(std::as_bytes(std::span(text->data(), text->size())), "", options);
  if (!reread.ok()) broken("the text does not load", reread.status());
  if (*net_to_bytes(*reread, options.limits) != *bytes) broken("text and binary differ", Status());
}

bool has_references(const Net& net) {
  for (const Value& value : net.values)
    if (value.kind == Value::Kind::constant && !value.content.blob) return true;
  for (const Variable& variable : net.variables)
    if (!variable.initial.blob) return true;
  for (const Node& node : net.nodes)
    for (const Attribute& attribute : node.attributes)
      if (const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value); subnet && has_references(**subnet)) return true;
  return false;
}

// Binds inputs: open extents become 2, symbols 3, an unknown rank [2, 3].
std::vector<InputBinding> bindings(const Net& net) {
  std::vector<InputBinding> inputs;
  for (const ValueId id : net.inputs) {
    const DeclaredType& type = net[id].type;
    InputBinding binding;
    binding.type.dtype = type.dtype == DType::none ? DType::f32 : type.dtype;
    if (!type.ranked) binding.type.shape = Shape{2, 3};
    for (const Dim& dim : type.dims)
      binding.type.shape.push_back(dim.kind == Dim::Kind::symbol ? 3 : dim.kind == Dim::Kind::dynamic ? 2 : dim.value);
    inputs.push_back(std::move(binding));
  }
  return inputs;
}

Status run_plan(const std::shared_ptr<const Plan>& plan, const std::shared_ptr<VariableStore>& variables) {
  HEDDLE_TRY(const auto execution, Execution::create(plan, variables, {}));
  std::vector<std::shared_ptr<const Blob>> feeds;
  Dice dice(plan->steps.size());  // the same case has the same feeds
  for (size_t i = 0; i < plan->inputs.size(); ++i) {
    const TensorType& type = plan->values[plan->inputs[i].index].type;
    feeds.push_back(random_blob(type.dtype, type.shape, dice));
    execution->bind_input(i, feeds.back()->data);
  }
  RunSettings settings;
  settings.deadline_ns = 100'000'000;
  return execution->run(settings);
}

}  // namespace

struct LoadedCase {
  Net net;
  Limits limits;
};

const char* to_string(Stage stage) {
  static const char* const names[] = {"load", "resolve", "infer to compile", "run", "nowhere"};
  return names[static_cast<int>(stage)];
}

Limits Target::limits() {
  Limits limits;
  limits.file_bytes = 1 << 20;
  limits.nodes = 4096;
  limits.attribute_elements = 65536;
  limits.tensor_bytes = 1 << 20;
  limits.plan_bytes = 16 << 20;
  limits.folded_bytes = 1 << 18;
  limits.loop_trips = 100;
  return limits;
}

Outcome Target::go_on(const LoadedCase& loaded) const {
  Result<Net> resolved = resolve(loaded.net, registry_, loaded.limits);
  if (!resolved.ok()) return {Stage::resolve, resolved.status()};
  const auto resources = std::make_shared<ResourceTable>(ResourceHolder::session);
  PipelineOptions options;
  options.inputs = bindings(*resolved);
  for (const ValueId id : resolved->inputs)
    for (const Dim& dim : (*resolved)[id].type.dims)
      if (dim.kind == Dim::Kind::symbol && options.symbols.empty()) options.symbols = {{dim.symbol, 3}};
  options.compile.resources = resources;
  const auto plan = build_plan(*resolved, registry_, CompilationTarget("cpu:0", loaded.limits, 2), options, nullptr);
  if (!plan.ok()) return {Stage::build, plan.status()};
  if (!run_) return {Stage::done, {}};
  const auto variables = VariableStore::create(std::array<const Net*, 1>{&*resolved});
  Status status = variables.ok() ? run_plan(*plan, *variables) : variables.status();
  return status.ok() ? Outcome{Stage::done, {}} : Outcome{Stage::run, std::move(status)};
}

Outcome Target::test(std::span<const std::byte> file) const {
  LoadOptions options;
  options.limits = limits();
  options.attach_weights = false;
  auto net = load_net_bytes(file, "", options);
  Outcome outcome{Stage::load, net.status()};
  if (net.ok()) {
    check_round_trip(*net, options);
    // A net whose contents lie in other files stops here.
    outcome = has_references(*net) ? Outcome{Stage::load, Status(Code::weights_missing, "a case has no folder")}
                                   : go_on({std::move(net).value(), options.limits});
  }
  if (outcome.status.code() == Code::internal) broken("an error that is a defect", outcome.status);
  if (!outcome.status.ok() && outcome.status.diagnostic().message.empty()) broken("an error without a message", outcome.status);
  return outcome;
}

}  // namespace heddle::fuzz
