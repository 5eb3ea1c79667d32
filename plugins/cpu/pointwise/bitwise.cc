// BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot and BitShift.
#include "families.h"
#include "pointwise/elementwise.h"

namespace heddle::cpu {
namespace {

constexpr heddle_dtype_set unsigned_dtypes = dtypes<uint8_t, uint16_t, uint32_t, uint64_t>();

Status infer_bit_shift(InferContext& context) {
  const std::string direction = context.attributes.s("direction");
  if (direction == "LEFT" || direction == "RIGHT") return {};
  return invalid("direction is \"" + direction + "\", expected \"LEFT\" or \"RIGHT\"");
}

}  // namespace

void add_bitwise(Builder& plugin) {
  plugin.add(binary_operator("BitwiseAnd", 18, "bit_and(A, B)", integer_dtypes));
  plugin.add(binary_operator("BitwiseOr", 18, "bit_or(A, B)", integer_dtypes));
  plugin.add(binary_operator("BitwiseXor", 18, "bit_xor(A, B)", integer_dtypes));
  plugin.add(unary_operator("BitwiseNot", 18, "bit_not(X)", integer_dtypes));
  plugin.add(Op("BitShift", "", 11)
                 .doc("X shifted by Y bits; shifts of the width or more give 0")
                 .in("X", unsigned_dtypes)
                 .in("Y", unsigned_dtypes)
                 .out("Z", broadcast(), unsigned_dtypes)
                 .required("direction", HEDDLE_ATTRIBUTE_STRING)
                 .in_place("Z", "X")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_bit_shift)
                 .pointwise("select(direction_is_LEFT, shift_left(X, Y), shift_right(X, Y))")
                 .cpu<ExpressionKernel>()
                 .equals_pointwise());
}

}  // namespace heddle::cpu
