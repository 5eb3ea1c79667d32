// Finds the pattern of a rewrite rule in a net.
#pragma once

#include <optional>
#include <vector>

#include "edit/editor.h"
#include "plugin/rewrite_rule.h"

namespace heddle {

// One occurrence.
struct RuleMatch {
  std::vector<ValueId> values;  // by pattern value: the value matched
  std::vector<NodeId> nodes;    // by pattern node: the node matched

  ValueId value(ValueId pattern_value) const { return values[pattern_value.index]; }
};

// Returns the operator that makes the pattern's output, where a match begins.
NodeId pattern_anchor(const RewriteRule& rule);

// Returns the occurrence whose anchor is `at`; none: there is none.
//
// A pattern matches from its output backwards: the same operators with the attributes that the pattern states, constants of equal content,
// inputs that may be anything of the dtype and extents they declare (a symbol fits any extent, the same one everywhere). Values inside the
// pattern have no reader outside of it. The two inputs of an operator with HEDDLE_TRAIT_COMMUTATIVE may be in either order: as written is
// tried first, so that a net has one answer; if the rest then does not match, it is undone and the other order tried. There are at most
// 2^max_swapped forms to compare with.
std::optional<RuleMatch> find_match(const RewriteRule& rule, const Editor& editor, NodeId at);

}  // namespace heddle
