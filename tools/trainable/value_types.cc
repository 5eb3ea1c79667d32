#include "trainable/value_types.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/text/text.h"
#include "infer/infer.h"
#include "infer/registry_evaluator.h"

namespace heddle::trainable {
namespace {

using Symbols = std::vector<std::pair<std::string, int64_t>>;

// The numbers differ from one another in each round, and from round to round; they can be halved often, as layers of pictures do.
Symbols symbols_tried(const Net& net, int round) {
  Symbols symbols;
  for (const std::string& name : symbol_names(net)) symbols.emplace_back(name, 64 * (static_cast<int64_t>(symbols.size()) + 2 + round));
  return symbols;
}

std::string text_of(const Symbols& symbols) {
  std::vector<std::string> texts;
  for (const auto& [name, extent] : symbols) texts.push_back(fmt::format("{}={}", name, extent));
  return join(texts, ", ");
}

struct Round {
  Symbols symbols;
  TensorType type;
};

Result<Round> infer_round(const Net& net, ValueId value, int number, const std::shared_ptr<const RegistrySnapshot>& registry,
                          const Limits& limits) {
  const auto evaluator = make_registry_evaluator(registry);
  Round round;
  InferOptions options;
  options.symbols = round.symbols = symbols_tried(net, number);
  options.evaluator = evaluator.get();
  options.limits = limits;
  options.contents_vary = true;
  Result<TypedNet> typed = infer(net, registry, options);
  if (!typed.ok() && !round.symbols.empty()) return Status(typed.status()).during(fmt::format("with {}", text_of(round.symbols)));
  if (!typed.ok()) return typed.status();
  round.type = typed->type(value);
  return round;
}

}  // namespace

Result<DeclaredType> type_of(const Net& net, const std::string& name, const std::shared_ptr<const RegistrySnapshot>& registry,
                             const Limits& limits) {
  const std::optional<ValueId> value = net.find_value(name);
  if (!value) return Status(Code::unknown_name, fmt::format("the net has no value {}", quoted(name)), "see heddle inspect");
  HEDDLE_TRY(const Round first, infer_round(net, *value, 0, registry, limits));
  HEDDLE_TRY(const Round second, infer_round(net, *value, 1, registry, limits));
  if (first.type.late() || first.type.shape.rank() != second.type.shape.rank())
    return Status(Code::unsupported, fmt::format("the extents of {} are known only during the run", quoted(name)),
                  "name a value whose extents follow from those of the inputs");
  DeclaredType type;
  type.dtype = first.type.dtype;
  type.ranked = true;
  for (int axis = 0; axis < first.type.shape.rank(); ++axis) {
    const int64_t one = first.type.shape[axis], other = second.type.shape[axis];
    size_t symbol = 0;
    while (symbol < first.symbols.size() && !(first.symbols[symbol].second == one && second.symbols[symbol].second == other)) ++symbol;
    if (one != other && symbol == first.symbols.size())
      return Status(Code::unsupported,
                    fmt::format("extent {} of {} is {} with {} and {} with {}: neither a number nor that of an input", axis, quoted(name),
                                one, text_of(first.symbols), other, text_of(second.symbols)),
                    "export the model with fixed extents there");
    type.dims.push_back(one == other ? Dim::of(one) : Dim::named(first.symbols[symbol].first));
  }
  return type;
}

}  // namespace heddle::trainable
