// Compares the result of an operator with that of its reference.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

struct Tolerance {
  // The error in units of 2^(1 - digits of the dtype) of the expected number or its scale, whichever is larger, in addition to the rounding
  // of the expected number itself; 0: exact, once rounded. Integers are always exact.
  double ulps = 0;
  bool signed_zeros = true;  // whether -0 is another number than 0
};

// Returns an empty string if all elements are equal within the tolerance; else the first one that is not. Outputs that the reference omits
// are not compared; it must give at least one.
std::string difference(const std::vector<std::shared_ptr<const Blob>>& got, const std::vector<Numbers>& expected,
                       const Tolerance& tolerance);

// Return the tensor's bytes in the order of the layout, and back in row-major order. Blocks are not supported: no layout of Heddle's
// plugins has any.
std::shared_ptr<const Blob> in_layout(const std::shared_ptr<const Blob>& row_major, const heddle_layout& layout);
std::shared_ptr<const Blob> row_major(const std::shared_ptr<const Blob>& laid_out, const heddle_layout& layout);

}  // namespace heddle::conformance
