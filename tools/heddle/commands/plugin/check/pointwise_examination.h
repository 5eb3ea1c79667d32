// The part of `heddle plugin check` that examines an operator with a kernel beside a pointwise text.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "operator_runner/operator_runner.h"

namespace heddle::tool {

// Compares the outputs of `call` with the results of the operator's pointwise text for its inputs, bit by bit, any NaN for any other.
// Empty: equal, or the operator has no text, no kernel of its own, or inputs of several dtypes, which are not fused.
std::string examine_pointwise(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                              const std::vector<std::shared_ptr<const Blob>>& outputs);

// Compares them on inputs that combine NaN, zeros of both signs, infinities, denormals and the ends of the range in all pairs, with its
// optional inputs and without, in every dtype that the schema allows.
std::string examine_special_values(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed);

}  // namespace heddle::tool
