// Dtypes that have a number in the ABI and no support yet: nets that use them are refused by name.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "heddle/abi.h"

namespace heddle {

// Returns the name, as "f8e4m3"; empty: the number is not reserved.
inline std::string_view reserved_dtype(int number) {
  constexpr std::array<std::string_view, HEDDLE_RESERVED_DTYPE_COUNT - HEDDLE_DTYPE_COUNT> names = {"f8e4m3", "f8e5m2", "i4", "u4"};
  if (number < HEDDLE_DTYPE_COUNT || number >= HEDDLE_RESERVED_DTYPE_COUNT) return {};
  return names[static_cast<size_t>(number - HEDDLE_DTYPE_COUNT)];
}
inline bool is_reserved_dtype(std::string_view name) {
  for (int number = HEDDLE_DTYPE_COUNT; number < HEDDLE_RESERVED_DTYPE_COUNT; ++number)
    if (reserved_dtype(number) == name) return true;
  return false;
}

}  // namespace heddle
