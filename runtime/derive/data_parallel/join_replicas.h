// The outputs and losses of a replicated net, of those that its replicas have.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "derive/data_parallel/replica_choice.h"
#include "heddle/derivation.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle {

// A net that was copied once for each device.
struct Replicas {
  Net net;  // resolved; it has no outputs
  ReplicaChoice choice;
  std::vector<std::vector<std::string>> values;     // by replica, and value of the net that was copied: their names
  std::vector<std::vector<std::string>> variables;  // by variable, and replica; one name: there is one for all
};

// Adds the outputs of `net`, from which `replicas` were copied, and the losses to the net of the replicas; returns the losses that are to
// be minimised, those of each replica.
Result<std::vector<std::string>> join_replicas(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry,
                                               Evaluator& evaluator, const DataParallelOptions& options,
                                               const std::vector<std::string>& losses,
                                               const std::vector<std::pair<std::string, int64_t>>& symbols, const Limits& limits,
                                               Replicas& replicas);

}  // namespace heddle
