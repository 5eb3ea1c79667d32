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
  plugin.add(binary_operator("BitwiseAnd", 18, "bit_and(A, B)", integer_dtypes)
                 .doc("Combines the bits of two tensors by AND.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("i32[4] = 12 10 7 0, i32[4] = 10 6 15 5 -> i32[4] = 8 2 7 0", "NumPy: np.bitwise_and")
                 .example("i32[2,2] = -1 -4 6 3, i32[2] = 5 -2 -> i32[2,2] = 5 -4 4 2", "NumPy: np.bitwise_and"));
  plugin.add(binary_operator("BitwiseOr", 18, "bit_or(A, B)", integer_dtypes)
                 .doc("Combines the bits of two tensors by OR.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("i32[4] = 12 10 7 0, i32[4] = 10 6 15 5 -> i32[4] = 14 14 15 5", "NumPy: np.bitwise_or")
                 .example("i32[2,2] = -1 -4 6 3, i32[2] = 5 -2 -> i32[2,2] = -1 -2 7 -1", "NumPy: np.bitwise_or"));
  plugin.add(binary_operator("BitwiseXor", 18, "bit_xor(A, B)", integer_dtypes)
                 .doc("Combines the bits of two tensors by exclusive OR.")
                 .traits(HEDDLE_TRAIT_COMMUTATIVE)
                 .example("i32[4] = 12 10 7 0, i32[4] = 10 6 15 5 -> i32[4] = 6 12 8 5", "NumPy: np.bitwise_xor")
                 .example("i32[2,2] = -1 -4 6 3, i32[2] = 5 -2 -> i32[2,2] = -6 2 3 -3", "NumPy: np.bitwise_xor"));
  plugin.add(unary_operator("BitwiseNot", 18, "bit_not(X)", integer_dtypes)
                 .doc("Inverts each bit of each element.")
                 .example("i32[4] = 0 5 -1 -8 -> i32[4] = -1 -6 0 7", "NumPy: np.bitwise_not"));
  plugin.add(Op("BitShift", "", 11)
                 .doc("Shifts the bits of each element of X by Y places, as `direction` says (LEFT, RIGHT). A shift by the width of the "
                      "type or more gives 0.")
                 .formula("Z = X << Y, or X >> Y")
                 .shapes("Z has the dims to which the inputs broadcast")
                 .in("X", unsigned_dtypes)
                 .in("Y", unsigned_dtypes)
                 .out("Z", broadcast(), unsigned_dtypes)
                 .required("direction", HEDDLE_ATTRIBUTE_STRING)
                 .in_place("Z", "X")
                 .traits(HEDDLE_TRAIT_LAYOUT_TRANSPARENT | HEDDLE_TRAIT_CHEAP)
                 .infer(infer_bit_shift)
                 .pointwise("select(direction_is_LEFT, shift_left(X, Y), shift_right(X, Y))")
                 .cpu<ExpressionKernel>()
                 .equals_pointwise()
                 .example("u8[4] = 1 3 5 1, u8[4] = 0 2 4 7; direction=\"LEFT\" -> u8[4] = 1 12 80 128", "NumPy: np.left_shift")
                 .example("u8[4] = 1 3 200 255, u8[] = 2; direction=\"RIGHT\" -> u8[4] = 0 0 50 63", "NumPy: np.right_shift")
                 .example("u8[2] = 255 1, u8[] = 64; direction=\"LEFT\" -> u8[2] = 0 0", "by hand: nothing is left of any width"));
}

}  // namespace heddle::cpu
