// How ScatterElements and ScatterND combine updates with what is there. Pure.
#pragma once

#include <cstdint>

#include "shared/operator_api.h"

namespace heddle::operators {

enum class ScatterReduction : uint8_t { none, add, mul, max, min };

Status parse_reduction(const Attributes& attributes, ScatterReduction* reduction);
// The same for the dtype of the data. Of bools the sum is whether any is true, the product whether all are.
Status reduction_of(const CreateContext& context, ScatterReduction* reduction);

}  // namespace heddle::operators
