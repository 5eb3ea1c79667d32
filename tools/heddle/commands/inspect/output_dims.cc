#include "commands/inspect/output_dims.h"

#include <array>
#include <string>
#include <utility>

#include "infer/infer.h"
#include "resolve/resolve.h"

namespace heddle::tool {
namespace {

using Symbols = std::vector<std::pair<std::string, int64_t>>;

// Extents that are unlikely to arise by chance, farther apart in the second round, so that a sum of a symbol and a number is none of them;
// they can be halved often, as layers of pictures do, and divided by 3. In the third round they are small: this shows a limit to a number.
class ExtentsTried {
 public:
  explicit ExtentsTried(int round) : step_(round == 0 ? 48 : round == 1 ? 96 : 1), next_(round == 2 ? 1 : 2 * step_) {}
  int64_t next() { return std::exchange(next_, next_ + step_); }

 private:
  const int64_t step_;
  int64_t next_;
};

// Infers once, without an evaluator: inspecting a net runs no kernel (docs/security.md). `symbols` become those of the net with their
// extents.
Result<TypedNet> inferred(const Net& resolved, const std::shared_ptr<const RegistrySnapshot>& registry, const Limits& limits, int round,
                          Symbols* symbols) {
  ExtentsTried tried(round);
  for (const std::string& name : symbol_names(resolved)) symbols->emplace_back(name, tried.next());
  InferOptions options;
  options.symbols = *symbols;
  options.limits = limits;
  options.contents_vary = true;
  for (const ValueId id : resolved.inputs) {
    const DeclaredType& declared = resolved[id].type;
    InputBinding binding;
    bool is_open = false;
    for (const Dim& dim : declared.dims) is_open = is_open || dim.kind == Dim::Kind::dynamic;
    if (declared.ranked && is_open) {  // others are as the net declares them
      binding.type.dtype = declared.dtype;
      for (const Dim& dim : declared.dims) {
        int64_t extent = dim.value;
        if (dim.kind == Dim::Kind::dynamic) extent = tried.next();
        for (const auto& [name, of_symbol] : *symbols)
          if (dim.kind == Dim::Kind::symbol && dim.symbol == name) extent = of_symbol;
        binding.type.shape.push_back(extent);
      }
    }
    options.inputs.push_back(std::move(binding));
  }
  return infer(resolved, registry, options);
}

Dim dim_of(int64_t first, int64_t second, const Symbols& symbols, const Symbols& others) {
  if (first == second) return Dim::of(first);
  for (size_t i = 0; i < symbols.size(); ++i)
    if (symbols[i].second == first && others[i].second == second) return Dim::named(symbols[i].first);
  return {};
}

int64_t extent_of(const Dim& dim, const Symbols& symbols) {
  for (const auto& [name, extent] : symbols)
    if (dim.kind == Dim::Kind::symbol && dim.symbol == name) return extent;
  return dim.value;
}

}  // namespace

Result<std::vector<DeclaredType>> output_types(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               const Limits& limits) {
  HEDDLE_TRY(const Net resolved, resolve(net, registry, limits));
  std::array<Symbols, 3> symbols;
  HEDDLE_TRY(const TypedNet first, inferred(resolved, registry, limits, 0, &symbols[0]));
  HEDDLE_TRY(const TypedNet second, inferred(resolved, registry, limits, 1, &symbols[1]));
  const Result<TypedNet> small = inferred(resolved, registry, limits, 2, &symbols[2]);  // many nets do not accept extents this small
  std::vector<DeclaredType> types;
  for (const ValueId id : first.net.outputs) {
    const TensorType &a = first.type(id), &b = second.type(id);
    DeclaredType type;
    type.dtype = a.dtype;
    type.ranked = a.shape.rank() == b.shape.rank();
    for (int d = 0; type.ranked && d < a.shape.rank(); ++d) {
      const bool late = a.dynamic || a.bounded_axis == d || (a.follows_bounded && a.bounded_axis < 0);
      Dim dim = late ? Dim() : dim_of(a.shape[d], b.shape[d], symbols[0], symbols[1]);
      if (dim.kind != Dim::Kind::dynamic && small.ok() && small->type(id).shape.rank() == a.shape.rank() &&
          small->type(id).shape[d] != extent_of(dim, symbols[2]))
        dim = {};
      type.dims.push_back(std::move(dim));
    }
    types.push_back(std::move(type));
  }
  return types;
}

}  // namespace heddle::tool
