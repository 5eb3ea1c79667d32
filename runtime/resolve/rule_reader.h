// Reads a plugin's rewrite rule: two nets in text form become two resolved nets.
#pragma once

#include "plugin/registry.h"
#include "plugin/rewrite_rule.h"

namespace heddle {

// A RuleReader for the registry of a runtime. Errors name rule and file: syntax, unknown_operator and the other errors of load and resolve;
// plugin_invalid for features that a rule must not have (other ports on one side, several outputs, variables, random operators).
// Thread-safe.
Result<RewriteRule> read_rewrite_rule(const LoadedPlugin& plugin, const heddle_rewrite_rule& rule,
                                      const std::shared_ptr<const RegistrySnapshot>& registry);

}  // namespace heddle
