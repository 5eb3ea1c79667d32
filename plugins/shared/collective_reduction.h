// The ways in which AllReduce, Reduce and ReduceScatter combine the elements of participants. Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

enum class Reduction : uint8_t { sum, mean, min, max, prod };

// Reads the attribute "reduction". Errors: invalid.
Status read_reduction(const Attributes& attributes, Reduction* reduction);

}  // namespace heddle::operators
