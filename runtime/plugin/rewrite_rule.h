// A plugin's rewrite rule as the host keeps it: read and resolved once, when the plugin is loaded.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "heddle/abi.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct LoadedPlugin;
class RegistrySnapshot;

// The maximum of a pattern's operators that are matched with their inputs in both orders: a place of a net is compared with at most
// 2^max_swapped forms.
constexpr size_t max_swapped = 12;

// Both nets are resolved; their nodes point to schemas of the snapshot that the rule belongs to, which keeps them alive.
struct RewriteRule {
  std::string name;  // "plugin: rule"
  Net pattern, replacement;
  std::vector<std::vector<Attribute>> stated;  // by pattern node: the attributes its author wrote
  std::vector<char> swapped;                   // by pattern node: matches with its two inputs in the other order too
};

// Reads and resolves one rule of `plugin` against the operators of `registry`. A function, because text and resolving belong to folders
// that depend on this one (resolve/rule_reader.h).
using RuleReader = std::function<Result<RewriteRule>(const LoadedPlugin& plugin, const heddle_rewrite_rule& rule,
                                                     const std::shared_ptr<const RegistrySnapshot>& registry)>;

}  // namespace heddle
