// The ways in which ScatterElements and ScatterND combine updates with the data. Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

enum class ScatterReduction : uint8_t { none, add, mul, max, min };

Status parse_reduction(const Attributes& attributes, ScatterReduction* reduction);
// The same for the dtype of the data: for bools the sum is their logical or, the product their logical and.
Status reduction_of(const CreateContext& context, ScatterReduction* reduction);

}  // namespace heddle::operators
