#include "commands/plugin/rule_examination.h"

#include <fmt/format.h>

#include <set>

#include "base/text.h"
#include "load/json.h"
#include "tensors/compare.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

std::set<std::string> symbols_of(const Net& net) {
  std::set<std::string> symbols;
  for (const Value& value : net.values)
    for (const Dim& dim : value.type.dims)
      if (dim.kind == Dim::Kind::symbol) symbols.insert(dim.symbol);
  return symbols;
}

// The net as it stands: rules must not touch what they are tested against.
Result<Session> open_alone(const Runtime& runtime, Net net, SessionOptions options) {
  options.rewrite_rules = false;
  return runtime.open(std::move(net), options);
}

Status examine(const Runtime& runtime, const heddle_rewrite_rule& rule, uint64_t seed, int64_t extent, std::string* shapes) {
  HEDDLE_TRY(const Net pattern, net_from_json(rule.pattern, {}), "in the pattern");
  HEDDLE_TRY(Net replacement, net_from_json(rule.replacement, {}), "in the replacement");
  InputRequest request;
  SessionOptions options;
  for (const std::string& symbol : symbols_of(pattern)) {
    request.symbols.push_back(fmt::format("{}={}", symbol, extent));
    options.symbols.emplace_back(symbol, extent);
    extent = extent > 1 ? extent + 2 : extent;
  }
  *shapes = request.symbols.empty() ? std::string() : fmt::format(" with {}", join(request.symbols, ", "));
  request.random_seed = seed;
  HEDDLE_TRY(Session of_pattern, open_alone(runtime, pattern, options), "in the pattern");
  HEDDLE_TRY(const auto blobs, make_inputs(of_pattern.inputs(), request));
  const std::vector<TensorView> inputs = views_of(blobs);
  // The replacement may leave types to the pattern.
  for (size_t i = 0; i < replacement.inputs.size() && i < pattern.inputs.size(); ++i)
    if (replacement[replacement.inputs[i]].type.dtype == DType::none)
      replacement[replacement.inputs[i]].type = pattern[pattern.inputs[i]].type;
  HEDDLE_TRY(const std::vector<Tensor> expected, of_pattern.run(inputs), "in the pattern");
  HEDDLE_TRY(Session of_replacement, open_alone(runtime, std::move(replacement), options), "in the replacement");
  HEDDLE_TRY(const std::vector<Tensor> actual, of_replacement.run(inputs), "in the replacement");
  if (expected.size() != actual.size()) return {Code::plugin_invalid, "pattern and replacement have different numbers of outputs"};
  for (size_t i = 0; i < expected.size(); ++i) {
    const Comparison c = compare(actual[i].view(), expected[i].view(), 1e-4, 1e-5);
    if (!c.equal) return {Code::plugin_invalid, fmt::format("the replacement's result differs: {}", c.reason)};
  }
  return {};
}

bool says_types(const Net& pattern) {
  for (const ValueId id : pattern.inputs)
    if (pattern[id].type.dtype == DType::none || !pattern[id].type.ranked) return false;
  return true;
}

}  // namespace

Verdict examine_rule(const Runtime& runtime, const heddle_rewrite_rule& rule, uint64_t seed) {
  const auto pattern = net_from_json(rule.pattern, {});
  if (pattern.ok() && !says_types(*pattern)) return {Verdict::Kind::not_run, "an input of the pattern says no dtype or no dims"};
  std::string shapes;
  for (const int64_t extent : {1, 3, 16}) {
    const Status status = examine(runtime, rule, seed, extent, &shapes);
    if (!status.ok()) return Verdict::of(status.text() + shapes);
  }
  return {};
}

}  // namespace heddle::tool
