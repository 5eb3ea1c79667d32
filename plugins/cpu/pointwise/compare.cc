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
  plugin.add(comparison_operator("Equal", 13, "eq(A, B)", any_dtype));
  plugin.add(comparison_operator("Greater", 13, "gt(A, B)", numeric_dtypes));
  plugin.add(comparison_operator("GreaterOrEqual", 16, "ge(A, B)", numeric_dtypes));
  plugin.add(comparison_operator("Less", 13, "lt(A, B)", numeric_dtypes));
  plugin.add(comparison_operator("LessOrEqual", 16, "le(A, B)", numeric_dtypes));
  plugin.add(test_operator("IsNaN", 13, "isnan(X)"));
  plugin.add(test_operator("IsInf", 10, "and(isinf(X), or(and(detect_negative, lt(X, 0)), and(detect_positive, gt(X, 0))))")
                 .attribute("detect_negative", 1)
                 .attribute("detect_positive", 1));
}

}  // namespace heddle::cpu
