// And, Or, Xor and Not of bools.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {

void add_logical(Builder& plugin) {
  plugin.add(comparison_operator("And", 7, "and(A, B)", dtypes<bool>())
                 .doc("Is true where both inputs are.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("bool[2,2] = 0 0 1 1, bool[2] = 0 1 -> bool[2,2] = 0 0 0 1", "NumPy: np.logical_and"));
  plugin.add(comparison_operator("Or", 7, "or(A, B)", dtypes<bool>())
                 .doc("Is true where one of the inputs is, or both.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("bool[2,2] = 0 0 1 1, bool[2] = 0 1 -> bool[2,2] = 0 1 1 1", "NumPy: np.logical_or"));
  plugin.add(comparison_operator("Xor", 7, "xor(A, B)", dtypes<bool>())
                 .doc("Is true where exactly one of the inputs is.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("bool[2,2] = 0 0 1 1, bool[2] = 0 1 -> bool[2,2] = 0 1 1 0", "NumPy: np.logical_xor"));
  plugin.add(unary_operator("Not", 1, "not(X)", dtypes<bool>())
                 .doc("Inverts each truth value.")
                 .example("bool[2] = 0 1 -> bool[2] = 1 0", "NumPy: np.logical_not"));
}

}  // namespace heddle::cpu
