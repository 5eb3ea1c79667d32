// Whether what an operator gave is what its reference says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

struct Tolerance {
  // In units of 2^(1 - digits of the dtype) of the expected number or its scale, whichever is larger, beside the rounding of the expected
  // number itself; 0: exact, once rounded. Integers are exact always.
  double ulps = 0;
  bool signed_zeros = true;  // whether -0 is another number than 0
};

// Empty: equal within the tolerance; else the first element that is not. Nothing is compared of outputs that the reference leaves out; it
// has to say something of one.
std::string difference(const std::vector<std::shared_ptr<const Blob>>& got, const std::vector<Numbers>& expected,
                       const Tolerance& tolerance);

// The tensor's bytes in the order that the layout says, and back to row-major. Blocks are not supported: none of ours has any.
std::shared_ptr<const Blob> in_layout(const std::shared_ptr<const Blob>& row_major, const heddle_layout& layout);
std::shared_ptr<const Blob> row_major(const std::shared_ptr<const Blob>& laid_out, const heddle_layout& layout);

}  // namespace heddle::conformance
