// The limits by name, and the one sentence about a limit that was exceeded. The limits themselves: heddle/limits.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "heddle/limits.h"
#include "heddle/status.h"

namespace heddle {

// One limit: its name, its member in Limits, the highest value allowed, and its meaning.
struct LimitEntry {
  const char* name;
  int64_t Limits::*value;
  int64_t most;
  const char* meaning;
};
// Returns all limits, in the order of the struct.
std::span<const LimitEntry> limit_table();

// Returns the hint to raise the limit of that name.
Hint raise_limit(const char* name);
// Returns the error "`what`, the limit NAME is VALUE", with that hint.
Status over_limit(const Limits& limits, int64_t Limits::*limit, std::string what);
// Returns the same error for code that has only a value of the limit with that name.
Status over_limit(const char* name, int64_t value, std::string what);

// Sets the limit of that name. Errors: unknown_name with the nearest names and all there are, invalid_argument (negative, or too much).
Status set_limit(Limits& limits, std::string_view name, int64_t value);

}  // namespace heddle
