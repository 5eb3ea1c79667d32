// Numbers that kernels often get wrong: NaN, zeros of both signs, infinities, denormals, the ends of the range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "net/net.h"

namespace heddle::tool {

// Returns values for input `input` of a call: over a shape of 24x24 each special value of the first input meets each of those of the
// others. Null: there are none of that dtype.
std::shared_ptr<const Blob> special_blob(DType dtype, uint32_t input, const Shape& shape, uint64_t seed);

// Whether the element at `p` is a NaN; false for integers and bools.
bool is_nan(DType dtype, const std::byte* p);
// Whether it is a zero of either sign.
bool is_zero(DType dtype, const std::byte* p);

}  // namespace heddle::tool
