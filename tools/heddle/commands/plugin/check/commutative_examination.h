// The part of `heddle plugin check` that examines an operator with the trait COMMUTATIVE.
#pragma once

#include <cstdint>
#include <string>

#include "commands/plugin/check/call_examination.h"

namespace heddle::tool {

// Runs a call of two inputs with them swapped: must give the same types and bits as `outputs`, except for the sign of a zero and the bits
// of a NaN. Empty: it does, or the operator does not have the trait; else what is wrong.
std::string examine_commutative(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                                const Blobs& outputs);

// Examines special values (special_values.h) in all pairs likewise, in every dtype that the schema allows.
std::string examine_commutative_values(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed);

}  // namespace heddle::tool
