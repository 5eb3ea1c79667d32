// The options of a training by several processes: --rendezvous, --rank, --ranks, --interface, --timeout.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/command.h"
#include "heddle/communicator.h"

namespace heddle::tool {

struct RankFlags {
  std::string rendezvous, interface;
  std::optional<int64_t> rank, ranks;
  std::optional<double> timeout;  // seconds; not given: 30

  void declare(CLI::App& app);
  // Returns which process of its job this one is, and how it finds the others; size 1 without a rendezvous: it is alone. Where they do not
  // say which, the launcher does, by PMIx. Errors: invalid_argument (options that do not go together, or not with what the launcher says);
  // device_failed (the launcher does not answer).
  Result<CommunicatorOptions> place() const;
  // Returns how many processes a launcher has started together with this one; 1: it is alone, or was started by none that says so.
  static int64_t started_together();
};

}  // namespace heddle::tool
