// What the process holds.
#pragma once

#include <cstdint>

namespace heddle::tool {

// Peak resident set in bytes, from the operating system; -1 when it does not say.
int64_t resident_peak_bytes();

}  // namespace heddle::tool
