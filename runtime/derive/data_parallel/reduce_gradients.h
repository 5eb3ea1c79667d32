// Sums the gradients of replicas: dense ones by AllReduce, several in a step (a bucket), in the order in which the backward pass makes
// them; gradients by rows by gathering the rows of all replicas on each device, and indices that several tables share once.
#pragma once

#include <string>
#include <vector>

#include "derive/differentiate.h"
#include "heddle/derivation.h"
#include "plugin/registry.h"

namespace heddle {

// By replica, and variable: its gradient on that replica. A variable without replicas has one on the first alone.
using ReplicaGradients = std::vector<std::vector<Gradient>>;

// `derived` has the gradients of `variables`, one after another, with all replicas of each (ReplicatedNet::variables); its net grows.
// Errors: unknown_operator, if no plugin has the collectives; unsupported (rows for some replicas, and a tensor for others).
Result<ReplicaGradients> reduce_gradients(DerivedNet& derived, const RegistrySnapshot& registry, const DataParallelOptions& options,
                                          const std::vector<std::vector<std::string>>& variables);

}  // namespace heddle
