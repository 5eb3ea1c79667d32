// differentiate: Net -> Net. Adds the operators that compute the gradients of losses to a resolved net, once, for every shape that it will
// be run with.
//
// Reverse mode, operator by operator from the last to the first. Where several readers of a value give it a gradient, the gradients are
// added in the order of the readers in the net. A gradient goes only through real values (f16, bf16, f32, f64), and has their dtype. What
// is derived from an operator is on its device, and the gradient of a copy is a copy back. The gradient of several losses is that of their
// sum; one may be computed from another. A loss that is not a scalar counts with all its elements.
//
// Gradients go through If, Scan and Loop by the gradients of their subnets (reverse/subnet_gradient.h), which become the bodies of an If or
// a Scan. A Loop needs no bound for it.
//
// Tables that rows are taken from (Gather) have a gradient by rows: the indices, which are those of the forward, and a row for each.
// Several lookups of one table are concatenated in the order of the lookups, as i64 where their indices are of two widths. The gradient is
// linked in the net (SparseLink).
#pragma once

#include <memory>
#include <vector>

#include "heddle/derivation.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle {

struct DerivedNet {
  Net net;  // resolved; resolve accepts it again
  std::vector<Gradient> gradients;
};

// Errors: unknown_name for a name that is no value; invalid_argument for values that have no gradients (integers), for a name that is
// wanted twice and where no loss depends on anything wanted; unsupported, naming the node, where an operator has no gradient, where a table
// has gradients of both kinds (with both lookups) or is looked up on two devices; hazard where a gradient needs a version of a variable
// that is overwritten before it; the errors of inference.
Result<DerivedNet> differentiate(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                 const DifferentiateOptions& options, const Limits& limits = {});

}  // namespace heddle
