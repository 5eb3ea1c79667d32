// And, Or, Xor and Not of bools.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {

void add_logical(Builder& plugin) {
  plugin.add(comparison_operator("And", 7, "and(A, B)", dtypes<bool>()));
  plugin.add(comparison_operator("Or", 7, "or(A, B)", dtypes<bool>()));
  plugin.add(comparison_operator("Xor", 7, "xor(A, B)", dtypes<bool>()));
  plugin.add(unary_operator("Not", 1, "not(X)", dtypes<bool>()));
}

}  // namespace heddle::cpu
