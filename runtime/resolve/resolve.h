// resolve: Net -> Net. Finds each node's operator schema among the plugins, checks arity and attributes, and makes every update of a
// variable an explicit version.
#pragma once

#include <memory>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"
#include "plugin/registry.h"

namespace heddle {

// Subnets are resolved too. All findings of the net are in the status (first, others attached): unknown_operator (with nearest names),
// arity_mismatch, unknown_attribute, attribute_mismatch, cycle, dangling_input, hazard, limit_exceeded. Pure.
Result<Net> resolve(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const Limits& limits = {});

}  // namespace heddle
