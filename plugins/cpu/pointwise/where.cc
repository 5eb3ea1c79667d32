// Where: one of two elements, as a condition says.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {

void add_where(Builder& plugin) {
  plugin.add(Op("Where", "", 16)
                 .in("condition", dtypes<bool>(), nullptr)
                 .in("X")
                 .in("Y")
                 .out("output", broadcast())
                 .in_place("output", "X")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .pointwise("select(condition, X, Y)"));
}

}  // namespace heddle::cpu
