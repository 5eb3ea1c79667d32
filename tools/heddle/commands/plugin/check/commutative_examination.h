// What `heddle plugin check` asks of an operator with the trait COMMUTATIVE.
#pragma once

#include <cstdint>
#include <string>

#include "commands/plugin/check/call_examination.h"

namespace heddle::tool {

// Runs a call of two inputs with them swapped: the same types and bits as `outputs`, but for the sign of a zero and which NaN it is. Empty:
// they are, or the operator does not have the trait; else what is wrong.
std::string examine_commutative(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                                const Blobs& outputs);

// The same of special values (special_values.h) in all pairs, in every dtype that the schema allows.
std::string examine_commutative_values(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed);

}  // namespace heddle::tool
