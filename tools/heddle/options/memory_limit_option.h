// --memory-limit SIZE: the most that the plan of a run may need.
#pragma once

#include <fmt/format.h>

#include <string>

#include "base/text/text.h"
#include "common/command.h"
#include "heddle/session.h"

namespace heddle::tool {

struct MemoryLimitOption {
  std::string size;  // empty: no limit of its own

  void declare(CLI::App& app) { app.add_option("--memory-limit", size, "planned peak")->type_name("SIZE"); }
  // Errors: invalid_argument for what is no size.
  Status apply(SessionOptions& options) const {
    if (size.empty() || parse_size(size, &options.memory_limit)) return {};
    return {Code::invalid_argument, fmt::format("--memory-limit {} is not a size", quoted(size)), "write it like 512MiB"};
  }
};

}  // namespace heddle::tool
