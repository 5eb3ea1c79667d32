// The flags of the command line by the names that the library's hints use for options: the tool prints hints with flags.
#pragma once

#include <span>
#include <string_view>

#include "base/text/option_names.h"
#include "heddle/status.h"

namespace heddle::tool {

// How the command line spells an option: "FLAG VALUE", or "FLAG ENTRY=VALUE" for one entry of many.
struct OptionFlag {
  OptionName option;
  std::string_view flag;
  std::string_view value = {};
};
// All of them.
std::span<const OptionFlag> option_flags();

// Replaces option names by flags in its hint and in those of the attached diagnostics.
Diagnostic with_flags(Diagnostic diagnostic);

}  // namespace heddle::tool
