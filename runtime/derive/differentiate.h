// differentiate: Net -> Net. Adds what computes the gradients of losses to a resolved net, once, for every shape that it will be run with.
//
// Reverse mode, operator by operator from the last to the first. Where several readers of a value give it a gradient they are added in the
// order of the readers in the net. A gradient goes through real values alone (f16, bf16, f32, f64), and is of their dtype. What is derived
// from an operator is on its device, and the gradient of a copy is a copy back. The gradient of several losses is that of their sum; one
// may be computed from another. A loss that is no scalar counts with all its elements.
//
// Through If, Scan and Loop gradients go by the gradients of their subnets (reverse/subnet_gradient.h), of which If and Scan are made. A
// Loop needs no bound for it.
//
// Tables that rows are taken from (Gather) have a gradient by rows: indices, which are the forward's own, and a row for each; several
// lookups of one table are put one behind the other, in the order of the lookups, as i64 where their indices are of two widths. It is
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
  Net net;  // resolved, as resolve takes it too
  std::vector<Gradient> gradients;
};

// Errors: unknown_name for what is no value; invalid_argument for what has no gradients (of integers), for a name that is wanted twice and
// where no loss depends on anything wanted; unsupported, naming the node, where an operator has no gradient, where a table has gradients of
// both kinds (with both lookups) or is looked up on two devices; hazard where a gradient needs a version of a variable that is
// overwritten before it; what inference says.
Result<DerivedNet> differentiate(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                 const DifferentiateOptions& options, const Limits& limits = {});

}  // namespace heddle
