// Numbers that kernels get wrong: NaN, zeros of both signs, infinities, denormals, the ends of the range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/net.h"

namespace heddle::tool {

// For input `input` of a call: over a shape of 24x24 each of those of the first input meets each of those of the others. Null: there are
// none of that dtype.
std::shared_ptr<const Blob> special_blob(DType dtype, uint32_t input, const Shape& shape, uint64_t seed);

// Of the element at `p`. Integers and bools are none.
bool is_nan(DType dtype, const std::byte* p);
// Of either sign.
bool is_zero(DType dtype, const std::byte* p);

}  // namespace heddle::tool
