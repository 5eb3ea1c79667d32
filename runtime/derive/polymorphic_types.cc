#include "derive/polymorphic_types.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text/text.h"

namespace heddle {
namespace {

// Extents are distinct within one round, different in both, and can be halved often, as layers of pictures do.
int64_t extent_tried(size_t symbol, int round) {
  return 64 * (static_cast<int64_t>(symbol) + 2 + round);
}

using Symbols = std::vector<std::pair<std::string, int64_t>>;

Symbols symbols_tried(const Net& net, const Symbols& given, int round) {
  Symbols all = given;
  size_t next = 0;
  for (const std::string& name : symbol_names(net))
    if (std::none_of(given.begin(), given.end(), [&](const auto& symbol) { return symbol.first == name; }))
      all.emplace_back(name, extent_tried(next++, round));
  return all;
}

std::string text_of(const Symbols& symbols) {
  std::vector<std::string> words;
  for (const auto& [name, extent] : symbols) words.push_back(fmt::format("{}={}", name, extent));
  return join(words, ", ");
}

}  // namespace

Result<PolymorphicTypes> PolymorphicTypes::infer(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry,
                                                 Evaluator& evaluator, const Symbols& symbols, const Limits& limits) {
  std::vector<TypedNet> rounds;
  for (const int round : {0, 1}) {
    InferOptions options;
    options.symbols = symbols_tried(net, symbols, round);
    options.evaluator = &evaluator;
    options.limits = limits;
    options.contents_vary = true;
    Result<TypedNet> typed = heddle::infer(net, registry, options);
    if (!typed.ok() && !options.symbols.empty()) return Status(typed.status()).during(fmt::format("with {}", text_of(options.symbols)));
    if (!typed.ok()) return typed.status();
    rounds.push_back(std::move(*typed));
  }
  return PolymorphicTypes(std::move(rounds[0]), std::move(rounds[1]), evaluator);
}

Result<PolymorphicTypes> PolymorphicTypes::of_subnet(
    const Net& subnet, const std::function<std::vector<InputBinding>(const TypedNet& around)>& bindings) const {
  std::vector<TypedNet> rounds;
  for (const TypedNet* around : {&first_, &second_}) {
    InferOptions options;
    options.inputs = bindings(*around);
    options.evaluator = evaluator_;
    options.limits = around->limits;
    options.contents_vary = true;
    HEDDLE_TRY(TypedNet typed, heddle::infer(subnet, around->registry, options));
    rounds.push_back(std::move(typed));
  }
  return PolymorphicTypes(std::move(rounds[0]), std::move(rounds[1]), *evaluator_);
}

bool PolymorphicTypes::is_real(ValueId id) const {
  const DType type = dtype(id);
  return type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16;
}

bool PolymorphicTypes::same_shape(ValueId id, const PolymorphicTypes& others, ValueId other) const {
  return first_.type(id).shape == others.first_.type(other).shape && second_.type(id).shape == others.second_.type(other).shape;
}

std::optional<int> PolymorphicTypes::joined_along(ValueId id, const PolymorphicTypes& others, const std::vector<ValueId>& parts) const {
  const auto is_joined = [&](const TypedNet& whole, const TypedNet& net, int axis) {
    const Shape& shape = whole.type(id).shape;
    int64_t sum = 0;
    for (const ValueId part : parts) {
      const Shape& own = net.type(part).shape;
      if (own.rank() != shape.rank()) return false;
      for (int d = 0; d < shape.rank(); ++d)
        if (d != axis && own[d] != shape[d]) return false;
      sum += own[axis];
    }
    return sum == shape[axis];
  };
  for (int axis = 0; axis < first_.type(id).shape.rank(); ++axis)
    if (is_joined(first_, others.first_, axis) && is_joined(second_, others.second_, axis)) return axis;
  return std::nullopt;
}

int64_t PolymorphicTypes::extent(ValueId id, int axis) const {
  const TensorType &a = first_.type(id), &b = second_.type(id);
  if (a.late() || b.late() || a.shape[axis] != b.shape[axis]) return -1;
  return a.shape[axis];
}

heddle_type PolymorphicTypes::abi(ValueId id) const {
  heddle_type type = {};
  type.struct_size = sizeof(type);
  type.dtype = static_cast<heddle_dtype>(dtype(id));
  type.bounded_axis = -1;
  type.rank = first_.type(id).shape.rank();
  if (first_.type(id).dynamic) type.flags = HEDDLE_TYPE_DYNAMIC;
  for (int d = 0; d < type.rank; ++d) type.dims[d] = extent(id, d);
  return type;
}

std::optional<Shape> PolymorphicTypes::shape(ValueId id) const {
  Shape shape;
  for (int d = 0; d < first_.type(id).shape.rank(); ++d) {
    if (extent(id, d) < 0) return std::nullopt;
    shape.push_back(extent(id, d));
  }
  return first_.type(id).dynamic ? std::nullopt : std::optional(shape);
}

std::optional<PolymorphicTypes::Spread> PolymorphicTypes::spread(ValueId from, ValueId to) const {
  const TensorType &a = first_.type(from), &b = second_.type(from), &c = first_.type(to), &d = second_.type(to);
  if (a.shape == c.shape && b.shape == d.shape) return Spread();
  const int missing = c.shape.rank() - a.shape.rank();
  if (a.dynamic || c.dynamic || missing < 0) return std::nullopt;
  Spread spread;
  spread.missing = missing;
  for (int axis = 0; axis < a.shape.rank(); ++axis) {
    if (a.shape[axis] == c.shape[axis + missing] && b.shape[axis] == d.shape[axis + missing]) continue;
    if (a.shape[axis] != 1 || b.shape[axis] != 1) return std::nullopt;
    spread.ones.push_back(axis + missing);
  }
  return spread;
}

}  // namespace heddle
