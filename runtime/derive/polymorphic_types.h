// PolymorphicTypes: the facts about each value of a net that hold for all extents: dtype and rank, extents that are the same in every run,
// and how values are broadcast.
//
// Found by inference with two different numbers for each symbol: a result that both agree on does not depend on them. A dim that depends on
// a symbol counts as larger than 1, as one that broadcasts must be written 1.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "heddle/status.h"
#include "infer/infer.h"
#include "net/evaluator.h"
#include "net/typed_net.h"
#include "plugin/registry.h"

namespace heddle {

class PolymorphicTypes {
 public:
  // `net` is resolved; `evaluator` must outlive the result. `symbols` have those extents and no others. Errors: those of inference, with
  // the extents that were tried.
  static Result<PolymorphicTypes> infer(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                        const std::vector<std::pair<std::string, int64_t>>& symbols, const Limits& limits);

  // Infers a net inside one of the operators. `bindings`: its inputs, as far as the net around it determines them.
  Result<PolymorphicTypes> of_subnet(const Net& subnet,
                                     const std::function<std::vector<InputBinding>(const TypedNet& around)>& bindings) const;
  const RegistrySnapshot& registry() const { return *first_.registry; }

  DType dtype(ValueId id) const { return first_.type(id).dtype; }
  // Whether it is f16, bf16, f32 or f64.
  bool is_real(ValueId id) const;
  // Whether its extents are unknown before it runs, and have no bound.
  bool is_dynamic(ValueId id) const { return first_.type(id).dynamic; }
  // Whether its extents in a run may be others than those that were inferred.
  bool is_late(ValueId id) const { return first_.type(id).late(); }
  // Whether a value of another net, inferred with the same extents, has the same shape in both inferences, as far as it is known.
  bool same_shape(ValueId id, const PolymorphicTypes& others, ValueId other) const;
  // The axis along which values of another net, inferred with the same extents, make up this value: its extent is the sum of theirs, the
  // others are equal. None: there is no such axis.
  std::optional<int> joined_along(ValueId id, const PolymorphicTypes& others, const std::vector<ValueId>& parts) const;
  // The type for the ABI; dims that differ between the two inferences are -1.
  heddle_type abi(ValueId id) const;
  // Its shape, if no extent depends on a symbol.
  std::optional<Shape> shape(ValueId id) const;

  // How `from` was broadcast to the shape of `to`: its dims are those of `to` after the first `missing`, except for `ones`, axes of `to`
  // along which it has extent 1 and `to` has not.
  struct Spread {
    int missing = 0;
    std::vector<int64_t> ones;
    bool none() const { return missing == 0 && ones.empty(); }
  };
  // None: it is unknown, or `from` was not broadcast.
  std::optional<Spread> spread(ValueId from, ValueId to) const;

 private:
  PolymorphicTypes(TypedNet first, TypedNet second, Evaluator& evaluator)
      : first_(std::move(first)), second_(std::move(second)), evaluator_(&evaluator) {}
  int64_t extent(ValueId id, int axis) const;

  TypedNet first_, second_;
  Evaluator* evaluator_;
};

}  // namespace heddle
