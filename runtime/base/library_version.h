// The version of this library.
#pragma once

#include <string_view>

namespace heddle {

// Returns it as "0.1.0".
std::string_view library_version();

}  // namespace heddle
