// The part of `heddle plugin check` that examines one operator's gradient.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "operator_runner/operator_runner.h"

namespace heddle::tool {

// Compares the gradient that the schema declares with differences of the kernel, of f64 where it has one, at the inputs of `call`, which
// gave `outputs`, and at real inputs moved a little, away from kinks:
// - along random directions over whole tensors, and along the gradient's own signs; a difference is narrowed down to its element;
// - element by element, the first ones and others drawn by `seed`, to both sides: where these disagree (kinks) the gradient may be anything
//   between them.
// Differences that do not converge with smaller steps are ignored. Empty: they agree, or there is nothing to compare (no real input or
// output); else what is wrong: also an input of real numbers that is given no gradient and is not declared as not differentiable, or that
// is and has one.
std::string examine_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                             const std::vector<std::shared_ptr<const Blob>>& outputs, uint64_t seed);

}  // namespace heddle::tool
