// Arithmetic of two inputs: Add, Sub, Mul, Div, Mod and Pow.
#include "families.h"
#include "pointwise/elementwise.h"
#include "shared/pow_arithmetic.h"

namespace heddle::cpu {
namespace {

class Pow : public PointwiseKernel {
 public:
  Status create(const CreateContext& context) {
    const heddle_dtype arithmetic = pow_arithmetic(context.input(0)->dtype, context.input(1)->dtype);
    return compile_node(context, context.op().pointwise, arithmetic, &program_, &input_map_);
  }
};

}  // namespace

void add_arithmetic(Builder& plugin) {
  plugin.add(binary_operator("Add", 14, "A + B", numeric_dtypes)
                 .doc("Adds two tensors element by element.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("f32[2,3] = 1.5 -2 3 0.5 4 -8, f32[3] = 0.5 -4 2 -> f32[2,3] = 2 -6 5 1 0 -6", "NumPy: np.add")
                 .example("i32[3] = 7 -7 5, i32[] = 3 -> i32[3] = 10 -4 8", "NumPy: np.add"));
  plugin.add(binary_operator("Sub", 14, "A - B", numeric_dtypes)
                 .doc("Subtracts the second tensor from the first, element by element.")
                 .example("f32[2,3] = 1.5 -2 3 0.5 4 -8, f32[3] = 0.5 -4 2 -> f32[2,3] = 1 2 1 0 8 -10", "NumPy: np.subtract")
                 .example("i32[3] = 7 -7 5, i32[] = 3 -> i32[3] = 4 -10 2", "NumPy: np.subtract"));
  plugin.add(binary_operator("Mul", 14, "A * B", numeric_dtypes)
                 .doc("Multiplies two tensors element by element.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("f32[2,3] = 1.5 -2 3 0.5 4 -8, f32[3] = 0.5 -4 2 -> f32[2,3] = 0.75 8 6 0.25 -16 -16", "NumPy: np.multiply")
                 .example("i32[3] = 7 -7 5, i32[] = 3 -> i32[3] = 21 -21 15", "NumPy: np.multiply"));
  plugin.add(
      binary_operator("Div", 14, "A / B", numeric_dtypes)
          .doc("Divides the first tensor by the second, element by element. Quotients of integers are truncated toward zero, and an "
               "integer divided by 0 gives 0.")
          .example("f32[2,3] = 1.5 -2 3 0.5 4 -8, f32[3] = 0.5 -4 2 -> f32[2,3] = 3 0.5 1.5 1 -1 -4", "NumPy: np.divide")
          .example("i32[5] = 7 -7 7 -7 5, i32[5] = 2 2 -2 -2 0 -> i32[5] = 3 -3 -3 3 0", "by hand: toward zero, and 0 of a division by 0")
          .example("i32[4] = 7 6 5 0, i32[4] = 2 3 0 4 -> i32[4] = 3 2 0 0", "by hand: toward zero, and 0 of a division by 0"));
  plugin.add(binary_operator("Mod", 13, "select(fmod, fmod(A, B), mod(A, B))", numeric_dtypes)
                 .doc("Computes the remainder of the division of A by B. It has the sign of B or, with fmod 1, that of A. An integer "
                      "modulo 0 gives 0.")
                 .attribute("fmod", 0)
                 .example("i32[4] = 7 -7 7 -7, i32[4] = 3 3 -3 -3 -> i32[4] = 1 2 -2 -1", "NumPy: np.mod")
                 .example("i32[4] = 7 -7 7 -7, i32[4] = 3 3 -3 -3; fmod=1 -> i32[4] = 1 -1 1 -1", "NumPy: np.fmod")
                 .example("f32[4] = 5.5 -5.5 5.5 -5.5, f32[4] = 2 2 -2 -2; fmod=1 -> f32[4] = 1.5 -1.5 1.5 -1.5", "NumPy: np.fmod"));
  Op op("Pow", "", 15);
  op.doc("Raises each element of X to the power of the element of Y. The result has the dtype of X.");
  op.in("X", numeric_dtypes)
      .in("Y", numeric_dtypes, "T1")
      .out("Z", broadcast(), numeric_dtypes)
      .in_place("Z", "X")
      .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
      .pointwise("pow(X, Y)")
      .cpu<Pow>()
      .equals_pointwise()
      .example("f32[2,2] = 2 3 -2 0.5, f32[2] = 3 2 -> f32[2,2] = 8 9 -8 0.25", "NumPy: np.power")
      .example("i32[4] = 2 3 0 5, i32[4] = 6 4 0 1 -> i32[4] = 64 81 1 5", "NumPy: np.power")
      .example("i32[3] = 4 9 2, f32[3] = 0.5 0.5 1.5 -> i32[3] = 2 3 2", "NumPy: np.trunc(np.power), as casts");
  // The other dtypes of Y.
  for (const char* text : {
           "f32[3] = 2 3 4, f16[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, bf16[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, f64[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, i8[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, i16[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, i32[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, i64[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, u8[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, u16[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, u32[3] = 3 2 0 -> f32[3] = 8 9 1",
           "f32[3] = 2 3 4, u64[3] = 3 2 0 -> f32[3] = 8 9 1",
       })
    op.example(text, "by hand");
  plugin.add(op);
}

}  // namespace heddle::cpu
