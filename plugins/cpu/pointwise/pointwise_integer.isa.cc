// Instructions of i32, i64, u64 and u8 programs. Arithmetic wraps. Results that integers do not have are defined here, never a trap: x / 0
// = 0, x mod 0 = 0, the smallest number / -1 = itself; 0 to a negative power = 0; shifts of the width or more give 0.
#include "pointwise/pointwise_loops.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class T>
constexpr bool is_signed = T(-1) < T(0);

template <class T>
T quotient(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>)
    if (b == -1) return static_cast<T>(-a);
  return a / b;
}
// The result has the sign of the dividend.
template <class T>
T remainder(T a, T b) {
  if (b == 0) return 0;
  if constexpr (is_signed<T>)
    if (b == -1) return 0;
  return a % b;
}
// The result has the sign of the divisor.
template <class T>
T floored_remainder(T a, T b) {
  const T r = remainder(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <class T>
T power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : (base == static_cast<T>(-1) ? ((exponent & 1) ? base : static_cast<T>(1)) : static_cast<T>(0));
  T result = 1;
  for (; exponent > 0; exponent = static_cast<T>(exponent >> 1)) {
    if (exponent & 1) result = static_cast<T>(result * base);
    base = static_cast<T>(base * base);
  }
  return result;
}
// Bytes have no shifts of their own: they are shifted by the bits of the count, one after the other.
template <class T, class V = Vector<T>>
V shifted_left(V a, V b) {
  const Mask<T> beyond = (b < 0) | (b >= static_cast<T>(8 * sizeof(T)));
  if constexpr (sizeof(T) == 1) {
    a = (b & 1) != 0 ? a << 1 : a;
    a = (b & 2) != 0 ? a << 2 : a;
    a = (b & 4) != 0 ? a << 4 : a;
    return beyond ? V{} : a;
  } else {
    return beyond ? V{} : a << (beyond ? V{} : b);
  }
}
template <class T, class V = Vector<T>>
V shifted_right(V a, V b) {
  const Mask<T> beyond = (b < 0) | (b >= static_cast<T>(8 * sizeof(T)));
  if constexpr (sizeof(T) == 1) {
    a = (b & 1) != 0 ? a >> 1 : a;
    a = (b & 2) != 0 ? a >> 2 : a;
    a = (b & 4) != 0 ? a >> 4 : a;
    return beyond ? V{} : a;
  } else {
    return beyond ? V{} : a >> (beyond ? V{} : b);
  }
}

template <class T, class V = Vector<T>>
V truth(Mask<T> mask) {
  return (V)(-mask);
}

template <class T>
constexpr InstructionSet make() {
  using V = Vector<T>;
  InstructionSet set = {};
  HEDDLE_VECTOR2(add, V, a + b)
  HEDDLE_VECTOR2(sub, V, a - b)
  HEDDLE_VECTOR2(mul, V, a * b)
  HEDDLE_VECTOR2(min, V, a < b ? a : b)
  HEDDLE_VECTOR2(max, V, a > b ? a : b)
  HEDDLE_VECTOR2(lt, V, truth<T>(a < b))
  HEDDLE_VECTOR2(le, V, truth<T>(a <= b))
  HEDDLE_VECTOR2(gt, V, truth<T>(a > b))
  HEDDLE_VECTOR2(ge, V, truth<T>(a >= b))
  HEDDLE_VECTOR2(eq, V, truth<T>(a == b))
  HEDDLE_VECTOR2(ne, V, truth<T>(a != b))
  HEDDLE_VECTOR2(logical_and, V, truth<T>((a != 0) & (b != 0)))
  HEDDLE_VECTOR2(logical_or, V, truth<T>((a != 0) | (b != 0)))
  HEDDLE_VECTOR2(logical_xor, V, truth<T>((a != 0) ^ (b != 0)))
  HEDDLE_VECTOR1(logical_not, V, truth<T>(a == 0))
  HEDDLE_VECTOR2(bit_and, V, a & b)
  HEDDLE_VECTOR2(bit_or, V, a | b)
  HEDDLE_VECTOR2(bit_xor, V, a ^ b)
  HEDDLE_VECTOR1(bit_not, V, ~a)
  HEDDLE_VECTOR1(neg, V, -a)
  HEDDLE_VECTOR1(abs, V, a < 0 ? -a : a)
  HEDDLE_VECTOR1(sign, V, a > 0 ? V{} + 1 : (V)(a < 0))
  HEDDLE_VECTOR1(floor, V, a)
  HEDDLE_VECTOR1(ceil, V, a)
  HEDDLE_VECTOR1(round, V, a)
  HEDDLE_VECTOR3(select, V, a != 0 ? b : c)
  HEDDLE_EACH2(div, T, quotient(a, b))
  HEDDLE_EACH2(mod, T, floored_remainder(a, b))
  HEDDLE_EACH2(fmod, T, remainder(a, b))
  HEDDLE_EACH2(pow, T, power(a, b))
  HEDDLE_VECTOR2(shift_left, V, shifted_left<T>(a, b))
  HEDDLE_VECTOR2(shift_right, V, shifted_right<T>(a, b))
  HEDDLE_EXTENSION1(copy_value, V, a)
  if constexpr (sizeof(T) == 1) {
    // Nothing to wrap: a byte's arithmetic does.
  } else if constexpr (sizeof(T) == 4) {
    HEDDLE_EXTENSION1(wrap_i8, V, (a << 24) >> 24)
    HEDDLE_EXTENSION1(wrap_i16, V, (a << 16) >> 16)
    HEDDLE_EXTENSION1(wrap_u8, V, a & 0xff)
    HEDDLE_EXTENSION1(wrap_u16, V, a & 0xffff)
  } else {
    HEDDLE_EXTENSION1(wrap_u32, V, a & 0xffffffff)
  }
  return set;
}

constinit const InstructionSet instructions_i32 = make<int32_t>();
constinit const InstructionSet instructions_i64 = make<int64_t>();
constinit const InstructionSet instructions_u64 = make<uint64_t>();
constinit const InstructionSet instructions_u8 = make<uint8_t>();

}  // namespace

extern const InstructionSet instructions_f32;
extern const InstructionSet instructions_f64;
constinit const InstructionTable instructions = {
    {&instructions_f32, &instructions_f64, &instructions_i32, &instructions_i64, &instructions_u64, &instructions_u8}};

}  // namespace heddle::cpu::HEDDLE_ISA
