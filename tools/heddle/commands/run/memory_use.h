// The memory that the process uses.
#pragma once

#include <cstdint>

namespace heddle::tool {

// Peak resident set in bytes, from the operating system; -1 when it is not available.
int64_t resident_peak_bytes();

}  // namespace heddle::tool
