// --commit: when the updates of variables are made.
#pragma once

#include <string>

#include "common/command.h"
#include "heddle/session.h"

namespace heddle::tool {

struct CommitOption {
  std::string mode = "late";
  void declare(CLI::App& app) {
    app.add_option("--commit", mode, "updates of variables after all that may fail, or as early as they can be made")
        ->check(CLI::IsMember({"late", "early"}))
        ->capture_default_str();
  }
  bool is_late() const { return mode == "late"; }
  void apply(SessionOptions& options) const { options.commit_late = is_late(); }
};

}  // namespace heddle::tool
