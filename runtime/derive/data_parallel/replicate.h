// replicate: Net -> Net. Copies a net to several devices, each of which works on a part of the batch: data parallelism, before gradients
// are derived. Done once, for every shape.
//
// Inputs are split along axis 0 (heddle::Shard). Each device has a replica of each operator, and of each variable, which is a variable of
// its own (Variable::replica_of). Replica 0 keeps the names of the net; those of the others end with "@" and the device. Variables that a
// run of the net updates (running statistics) have the new content of replica 0 on all devices, by a Broadcast.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/derivation.h"
#include "heddle/status.h"
#include "net/evaluator.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle {

struct ReplicatedNet {
  Net net;  // resolved
  // Values that all replicas minimise together: each loss of each replica, weighed by the part of the batch that the replica has.
  std::vector<std::string> losses;
  // By variable: its names, one for each replica; one name: there is one for all replicas, on the host.
  std::vector<std::vector<std::string>> variables;
};

// `net` is resolved. The outputs of the new net are those of `net`, followed by the losses that are not among them: the rows of all
// replicas in their order, and of what has none, such as a loss, the mean over the batch. Of several ranks each has its own rows. Errors:
// unknown_name; invalid_argument (options that contradict each other; an operator on another device; an output of integers that depends on
// the batch and has no rows; an update of a variable that has no replicas); those of inference.
Result<ReplicatedNet> replicate(const Net& net, const std::shared_ptr<const RegistrySnapshot>& registry, Evaluator& evaluator,
                                const DataParallelOptions& options, const std::vector<std::string>& losses,
                                const std::vector<std::pair<std::string, int64_t>>& symbols, const Limits& limits = {});

}  // namespace heddle
