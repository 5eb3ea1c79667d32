#include "resolve/collectives.h"

#include <algorithm>

#include "plugin/schema.h"

namespace heddle {

bool is_collective(const Node& node) {
  return node.schema && node.schema->has_trait(HEDDLE_TRAIT_COLLECTIVE);
}

bool has_collectives(const Node& node) {
  if (is_collective(node)) return true;
  return std::any_of(node.attributes.begin(), node.attributes.end(), [](const Attribute& attribute) {
    const auto* const inside = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
    return inside && std::any_of((*inside)->nodes.begin(), (*inside)->nodes.end(), has_collectives);
  });
}

}  // namespace heddle
