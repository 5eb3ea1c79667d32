// --limit NAME=VALUE: limits on nets, for the commands that read nets.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "heddle/limits.h"

namespace heddle::tool {

struct LimitOptions {
  std::vector<std::string> texts;  // NAME=VALUE
  void declare(CLI::App& app);
  // Returns the limits with those that were given. Errors: unknown_name with all there are, invalid_argument (no number, or the same name
  // twice).
  Result<Limits> limits() const;
};

}  // namespace heddle::tool
