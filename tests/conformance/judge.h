// Whether what an operator gave is what its reference says.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "conformance/reference.h"

namespace heddle::conformance {

// Empty: equal within `ulps`; else the first element that is not. Of outputs that the reference leaves out nothing is compared.
std::string difference(const std::vector<std::shared_ptr<const Blob>>& got, const std::vector<Numbers>& expected, double ulps);

// The tensor's bytes in the order that the layout says, and back to row-major. Blocks are not supported: none of ours has any.
std::shared_ptr<const Blob> in_layout(const std::shared_ptr<const Blob>& row_major, const heddle_layout& layout);
std::shared_ptr<const Blob> row_major(const std::shared_ptr<const Blob>& laid_out, const heddle_layout& layout);

}  // namespace heddle::conformance
