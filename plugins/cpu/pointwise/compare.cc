// Comparisons and tests that give a bool. Where a NaN takes part, every comparison but != is false.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {
namespace {

Op test_operator(const char* name, int32_t version, const char* expression) {
  Op op(name, "", version);
  op.in("X", float_dtypes)
      .out_as("Y", HEDDLE_BOOL, same_as("X"))
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .pointwise(expression);
  return op;
}

}  // namespace

void add_compare(Builder& plugin) {
  plugin.add(comparison_operator("Equal", 13, "eq(A, B)", any_dtype)
                 .doc("Is true where the elements of A and B are equal. NaN equals nothing.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("f32[2,3] = 0 1 1 1 0 1, f32[3] = 0 1 0 -> bool[2,3] = 1 1 0 0 0 0", "NumPy: np.equal"));
  plugin.add(comparison_operator("Greater", 13, "gt(A, B)", numeric_dtypes)
                 .doc("Is true where A is greater than B.")
                 .example("f32[2,3] = 0 2 5 3 1 4, f32[3] = 3 2 4 -> bool[2,3] = 0 0 1 0 0 0", "NumPy: np.greater"));
  plugin.add(comparison_operator("GreaterOrEqual", 16, "ge(A, B)", numeric_dtypes)
                 .doc("Is true where A is greater than B or equal to it.")
                 .example("f32[2,3] = 0 2 5 3 1 4, f32[3] = 3 2 4 -> bool[2,3] = 0 1 1 1 0 1", "NumPy: np.greater_equal"));
  plugin.add(comparison_operator("Less", 13, "lt(A, B)", numeric_dtypes)
                 .doc("Is true where A is less than B.")
                 .example("f32[2,3] = 0 2 5 3 1 4, f32[3] = 3 2 4 -> bool[2,3] = 1 0 0 0 1 0", "NumPy: np.less"));
  plugin.add(comparison_operator("LessOrEqual", 16, "le(A, B)", numeric_dtypes)
                 .doc("Is true where A is less than B or equal to it.")
                 .example("f32[2,3] = 0 2 5 3 1 4, f32[3] = 3 2 4 -> bool[2,3] = 1 1 0 1 1 1", "NumPy: np.less_equal"));
  plugin.add(test_operator("IsNaN", 13, "isnan(X)")
                 .doc("Is true where an element is NaN.")
                 .example("f32[4] = nan -inf 0 1.5 -> bool[4] = 1 0 0 0", "NumPy: np.isnan"));
  plugin.add(test_operator("IsInf", 10,
                           "select(detect_negative, select(detect_positive, isinf(X), and(isinf(X), lt(X, 0))), and(detect_positive, "
                           "and(isinf(X), gt(X, 0))))")
                 .doc("Is true where an element is infinite. The attributes say which of the two infinities count.")
                 .attribute("detect_negative", 1)
                 .attribute("detect_positive", 1)
                 .example("f32[4] = nan -inf 0 inf -> bool[4] = 0 1 0 1", "NumPy: np.isinf")
                 .example("f32[4] = nan -inf 0 inf; detect_negative=0 -> bool[4] = 0 0 0 1", "NumPy: np.isposinf")
                 .example("f32[4] = nan -inf 0 inf; detect_positive=0 -> bool[4] = 0 1 0 0", "NumPy: np.isneginf"));
}

}  // namespace heddle::cpu
