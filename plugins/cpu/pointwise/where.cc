// Where: selects one of two elements by a condition.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {

void add_where(Builder& plugin) {
  Op op("Where", "", 16);
  op.doc("Takes each element from X where the condition is true, and from Y elsewhere.");
  op.in("condition", dtypes<bool>(), nullptr)
      .in("X")
      .in("Y")
      .out("output", broadcast())
      .in_place("output", "X")
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .pointwise("select(condition, X, Y)")
      .example("bool[2,1] = 1 0, f32[3] = 1 2 3, f32[2,3] = -1 -2 -3 -4 -5 -6 -> f32[2,3] = 1 2 3 -4 -5 -6", "NumPy: np.where");
  // The other dtypes of X and Y.
  for (const char* text : {
           "bool[3] = 1 0 1, f16[3] = 1 2 3, f16[] = 5 -> f16[3] = 1 5 3",
           "bool[3] = 1 0 1, bf16[3] = 1 2 3, bf16[] = 5 -> bf16[3] = 1 5 3",
           "bool[3] = 1 0 1, f64[3] = 1 2 3, f64[] = 5 -> f64[3] = 1 5 3",
           "bool[3] = 1 0 1, i8[3] = 1 2 3, i8[] = 5 -> i8[3] = 1 5 3",
           "bool[3] = 1 0 1, i16[3] = 1 2 3, i16[] = 5 -> i16[3] = 1 5 3",
           "bool[3] = 1 0 1, i32[3] = 1 2 3, i32[] = 5 -> i32[3] = 1 5 3",
           "bool[3] = 1 0 1, i64[3] = 1 2 3, i64[] = 5 -> i64[3] = 1 5 3",
           "bool[3] = 1 0 1, u8[3] = 1 2 3, u8[] = 5 -> u8[3] = 1 5 3",
           "bool[3] = 1 0 1, u16[3] = 1 2 3, u16[] = 5 -> u16[3] = 1 5 3",
           "bool[3] = 1 0 1, u32[3] = 1 2 3, u32[] = 5 -> u32[3] = 1 5 3",
           "bool[3] = 1 0 1, u64[3] = 1 2 3, u64[] = 5 -> u64[3] = 1 5 3",
           "bool[3] = 1 0 1, bool[3] = 1 0 0, bool[] = 1 -> bool[3] = 1 1 0",
       })
    op.example(text, "by hand");
  plugin.add(op);
}

}  // namespace heddle::cpu
