#include "commands/plugin/check/rule_examination.h"

#include <fmt/format.h>

#include <set>

#include "base/element.h"
#include "base/text/text.h"
#include "commands/plugin/example.h"
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

// Opens the net unchanged: rules must not be applied to the nets that they are tested with.
Result<Session> open_alone(const Runtime& runtime, Net net, SessionOptions options) {
  options.rewrite_rules = false;
  return runtime.open(std::move(net), options);
}

// The inputs of both nets: symbols of the pattern, or inputs of an example.
struct RuleInputs {
  int64_t extent = 0;
  const heddle_example* example = nullptr;
};

Status declare(const std::vector<ExampleTensor>& inputs, Net& net) {
  if (inputs.size() != net.inputs.size())
    return {Code::arity_mismatch, fmt::format("an example has {} inputs, the pattern {}", inputs.size(), net.inputs.size())};
  for (size_t i = 0; i < inputs.size(); ++i) net[net.inputs[i]].type = DeclaredType::of(inputs[i].dtype, inputs[i].shape);
  return {};
}

Result<std::vector<std::shared_ptr<const Blob>>> blobs_of(const std::vector<ExampleTensor>& inputs, uint64_t seed) {
  std::vector<std::shared_ptr<const Blob>> blobs;
  for (const ExampleTensor& t : inputs) {
    if (t.absent) return Status(Code::missing_input, "an input of an example is absent");
    blobs.push_back(t.content ? t.content : random_blob(t.dtype, t.shape, seed + blobs.size()));
  }
  return blobs;
}

Status examine(const Runtime& runtime, const heddle_rewrite_rule& rule, uint64_t seed, const RuleInputs& with, std::string* shapes) {
  HEDDLE_TRY(Net pattern, net_from_json(rule.pattern, {}), "in the pattern");
  HEDDLE_TRY(Net replacement, net_from_json(rule.replacement, {}), "in the replacement");
  InputRequest request;
  SessionOptions options;
  std::vector<ExampleTensor> said;
  if (with.example) {
    HEDDLE_TRY(said, parse_example_tensors(with.example->text, seed));
    HEDDLE_CHECK(declare(said, pattern));
    *shapes = fmt::format(" (example: {})", with.example->text);
  } else {
    int64_t extent = with.extent;
    for (const std::string& symbol : symbols_of(pattern)) {
      request.symbols.push_back(fmt::format("{}={}", symbol, extent));
      options.symbols.emplace_back(symbol, extent);
      extent = extent > 1 ? extent + 2 : extent;
    }
    *shapes = request.symbols.empty() ? std::string() : fmt::format(" with {}", join(request.symbols, ", "));
  }
  request.random_seed = seed;
  HEDDLE_TRY(Session of_pattern, open_alone(runtime, pattern, options), "in the pattern");
  HEDDLE_TRY(const auto blobs, with.example ? blobs_of(said, seed) : make_inputs(of_pattern.inputs(), request));
  const std::vector<TensorView> inputs = views_of(blobs);
  // The replacement may leave types to the pattern.
  for (size_t i = 0; i < replacement.inputs.size() && i < pattern.inputs.size(); ++i)
    if (with.example || replacement[replacement.inputs[i]].type.dtype == DType::none)
      replacement[replacement.inputs[i]].type = pattern[pattern.inputs[i]].type;
  HEDDLE_TRY(const std::vector<Tensor> expected, of_pattern.run(inputs), "in the pattern");
  HEDDLE_TRY(Session of_replacement, open_alone(runtime, std::move(replacement), options), "in the replacement");
  HEDDLE_TRY(const std::vector<Tensor> actual, of_replacement.run(inputs), "in the replacement");
  if (expected.size() != actual.size()) return {Code::plugin_invalid, "pattern and replacement have different numbers of outputs"};
  for (size_t i = 0; i < expected.size(); ++i) {
    // Each side rounds at other operators; a value between two operators of 16-bit floats has few digits.
    const double relative = byte_width(actual[i].view().dtype) == 2 && is_float(actual[i].view().dtype) ? 2e-2 : 1e-4;
    const Comparison c = compare(actual[i].view(), expected[i].view(), relative, relative / 10);
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
  std::vector<RuleInputs> all;
  for (uint32_t i = 0; i < rule.example_count; ++i) all.push_back({0, rule.examples[i]});
  const auto pattern = net_from_json(rule.pattern, {});
  if (!pattern.ok() || says_types(*pattern))
    for (const int64_t extent : {1, 3, 16}) all.push_back({extent, nullptr});
  if (all.empty()) return {Verdict::Kind::not_run, "", "an input of the pattern says no dtype or no dims, and the rule has no example"};
  std::string shapes;
  for (const RuleInputs& with : all) {
    const Status status = examine(runtime, rule, seed, with, &shapes);
    if (!status.ok()) return Verdict::of({"value", status.text() + shapes});
  }
  return {};
}

}  // namespace heddle::tool
