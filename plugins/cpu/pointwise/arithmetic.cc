// Arithmetic of two inputs: Add, Sub, Mul, Div, Mod and Pow.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {
namespace {

// Base and exponent may differ in dtype; the result has the base's. Mixed integers and floats are computed in f64.
heddle_dtype pow_arithmetic(heddle_dtype base, heddle_dtype exponent) {
  const auto is_float = [](heddle_dtype d) { return (float_dtypes & HEDDLE_DTYPE_BIT(d)) != 0; };
  if (base == exponent) return base;
  if (is_float(base)) return exponent == HEDDLE_F64 ? HEDDLE_F64 : base;
  return is_float(exponent) ? HEDDLE_F64 : HEDDLE_I64;
}

class Pow : public PointwiseKernel {
 public:
  Status create(const CreateContext& context) {
    const heddle_dtype arithmetic = pow_arithmetic(context.input(0)->dtype, context.input(1)->dtype);
    return compile_node(context, context.op().pointwise, arithmetic, &program_, &input_map_);
  }
};

}  // namespace

void add_arithmetic(Builder& plugin) {
  plugin.add(binary_operator("Add", 14, "A + B", numeric_dtypes));
  plugin.add(binary_operator("Sub", 14, "A - B", numeric_dtypes));
  plugin.add(binary_operator("Mul", 14, "A * B", numeric_dtypes));
  plugin.add(binary_operator("Div", 14, "A / B", numeric_dtypes).doc("integers truncate toward zero; x / 0 = 0 for them"));
  plugin.add(binary_operator("Mod", 13, "select(fmod, fmod(A, B), mod(A, B))", numeric_dtypes).attribute("fmod", 0));
  plugin.add(Op("Pow", "", 15)
                 .in("X", numeric_dtypes)
                 .in("Y", numeric_dtypes, "T1")
                 .out("Z", broadcast(), numeric_dtypes)
                 .in_place("Z", "X")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .pointwise("pow(X, Y)")
                 .cpu<Pow>()
                 .equals_pointwise());
}

}  // namespace heddle::cpu
