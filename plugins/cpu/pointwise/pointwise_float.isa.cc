// Instructions of f32 and f64 programs. f32 runs on own vector functions (vector/simd_math.h), the rarer functions and f64 through libm.
#include "pointwise/pointwise_loops.h"
#include "vector/simd_arcs.h"
#include "vector/simd_math.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class V>
V truth(Mask<float> mask) requires(sizeof(V{}[0]) == 4) {
  return cast_bits<V>(mask & cast_bits<VI>(splat<VF>(1.0f)));
}
template <class V>
V truth(Mask<double> mask) requires(sizeof(V{}[0]) == 8) {
  return cast_bits<V>(mask & cast_bits<VL>(splat<VD>(1.0)));
}

template <class V>
V sign(V a) {
  const V zero = {};
  const V one = zero + 1;
  return a > 0 ? one : (a < 0 ? -one : (a != a ? a : zero));
}

// The remainder with the sign of the divisor, as in NumPy's mod; exact like fmod.
template <class T>
T floored_remainder(T a, T b) {
  T r;
  if constexpr (sizeof(T) == 4)
    r = __builtin_fmodf(a, b);
  else
    r = __builtin_fmod(a, b);
  if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
  if constexpr (sizeof(T) == 4)
    return r == 0 ? __builtin_copysignf(0.0f, b) : r;
  else
    return r == 0 ? __builtin_copysign(0.0, b) : r;
}

// The instructions that need only arithmetic, comparisons and bits.
template <class V>
constexpr void add_arithmetic(InstructionSet& set) {
  HEDDLE_VECTOR2(add, V, a + b)
  HEDDLE_VECTOR2(sub, V, a - b)
  HEDDLE_VECTOR2(mul, V, a * b)
  HEDDLE_VECTOR2(div, V, a / b)
  HEDDLE_VECTOR2(min, V, smaller(a, b))
  HEDDLE_VECTOR2(max, V, larger(a, b))
  HEDDLE_VECTOR2(lt, V, truth<V>(a < b))
  HEDDLE_VECTOR2(le, V, truth<V>(a <= b))
  HEDDLE_VECTOR2(gt, V, truth<V>(a > b))
  HEDDLE_VECTOR2(ge, V, truth<V>(a >= b))
  HEDDLE_VECTOR2(eq, V, truth<V>(a == b))
  HEDDLE_VECTOR2(ne, V, truth<V>(a != b))
  HEDDLE_VECTOR2(logical_and, V, truth<V>((a != 0) & (b != 0)))
  HEDDLE_VECTOR2(logical_or, V, truth<V>((a != 0) | (b != 0)))
  HEDDLE_VECTOR2(logical_xor, V, truth<V>((a != 0) ^ (b != 0)))
  HEDDLE_VECTOR1(logical_not, V, truth<V>(a == 0))
  HEDDLE_VECTOR1(neg, V, -a)
  HEDDLE_VECTOR1(abs, V, abs(a))
  HEDDLE_VECTOR1(sqrt, V, sqrt(a))
  HEDDLE_VECTOR1(rsqrt, V, 1 / sqrt(a))
  HEDDLE_VECTOR1(reciprocal, V, 1 / a)
  HEDDLE_VECTOR1(floor, V, floor(a))
  HEDDLE_VECTOR1(ceil, V, ceil(a))
  HEDDLE_VECTOR1(round, V, round(a))
  HEDDLE_VECTOR1(sign, V, sign(a))
  HEDDLE_VECTOR1(isnan, V, truth<V>(a != a))
  HEDDLE_VECTOR1(isinf, V, truth<V>((abs(a) == __builtin_inf())))
  HEDDLE_VECTOR3(select, V, a != 0 ? b : c)
  HEDDLE_EXTENSION1(copy_value, V, a)
  HEDDLE_EXTENSION3(multiply_add, V, a * b + c)
  HEDDLE_EXTENSION3(clamp_above, V, smaller(larger(a, b), c))
  HEDDLE_EXTENSION3(clamp_below, V, larger(smaller(a, b), c))
}

constexpr InstructionSet make_f32() {
  InstructionSet set = {};
  add_arithmetic<VF>(set);
  HEDDLE_VECTOR1(isinf, VF, truth<VF>(abs(a) == __builtin_inff()))
  HEDDLE_VECTOR1(exp, VF, exp(a))
  HEDDLE_VECTOR1(log, VF, log(a))
  HEDDLE_VECTOR1(tanh, VF, tanh(a))
  HEDDLE_VECTOR1(erf, VF, erf(a))
  HEDDLE_VECTOR1(sigmoid, VF, sigmoid(a))
  HEDDLE_VECTOR1(log1p, VF, log1p(a))
  HEDDLE_VECTOR1(expm1, VF, expm1(a))
  HEDDLE_VECTOR1(sin, VF, sin(a))
  HEDDLE_VECTOR1(cos, VF, cos(a))
  HEDDLE_VECTOR1(tan, VF, tan(a))
  HEDDLE_VECTOR2(pow, VF, pow(a, b))
  HEDDLE_EXTENSION1(half_power, VF, root_power(a))
  HEDDLE_EXTENSION1(gelu_value, VF, (gelu<false, GeluOrder::half_of_x_first>(a)))
  HEDDLE_EXTENSION1(gelu_value + 1, VF, (gelu<true, GeluOrder::half_of_x_first>(a)))
  HEDDLE_EXTENSION1(gelu_value + 2, VF, (gelu<false, GeluOrder::half_last>(a)))
  HEDDLE_EXTENSION1(gelu_value + 3, VF, (gelu<true, GeluOrder::half_last>(a)))
  HEDDLE_EXTENSION1(gelu_value + 4, VF, (gelu<false, GeluOrder::half_of_sum_first>(a)))
  HEDDLE_EXTENSION1(gelu_value + 5, VF, (gelu<true, GeluOrder::half_of_sum_first>(a)))
  HEDDLE_EACH2(mod, float, floored_remainder(a, b))
  HEDDLE_EACH2(fmod, float, __builtin_fmodf(a, b))
  HEDDLE_VECTOR1(asin, VF, asin(a))
  HEDDLE_VECTOR1(acos, VF, acos(a))
  HEDDLE_VECTOR1(atan, VF, atan(a))
  HEDDLE_EACH1(sinh, float, __builtin_sinhf(a))
  HEDDLE_EACH1(cosh, float, __builtin_coshf(a))
  HEDDLE_EACH1(asinh, float, __builtin_asinhf(a))
  HEDDLE_EACH1(acosh, float, __builtin_acoshf(a))
  HEDDLE_EACH1(atanh, float, __builtin_atanhf(a))
  return set;
}

constexpr InstructionSet make_f64() {
  InstructionSet set = {};
  add_arithmetic<VD>(set);
  HEDDLE_EACH1(exp, double, __builtin_exp(a))
  HEDDLE_EACH1(log, double, __builtin_log(a))
  HEDDLE_EACH1(tanh, double, __builtin_tanh(a))
  HEDDLE_EACH1(erf, double, __builtin_erf(a))
  HEDDLE_EACH1(sigmoid, double, a < 0 ? __builtin_exp(a) / (1 + __builtin_exp(a)) : 1 / (1 + __builtin_exp(-a)))
  HEDDLE_EACH1(log1p, double, __builtin_log1p(a))
  HEDDLE_EACH1(expm1, double, __builtin_expm1(a))
  HEDDLE_EACH1(sin, double, __builtin_sin(a))
  HEDDLE_EACH1(cos, double, __builtin_cos(a))
  HEDDLE_EACH1(tan, double, __builtin_tan(a))
  HEDDLE_EACH2(pow, double, b == 1 ? a : (b == 2 ? a * a : __builtin_pow(a, b)))
  HEDDLE_EACH2(mod, double, floored_remainder(a, b))
  HEDDLE_EACH2(fmod, double, __builtin_fmod(a, b))
  HEDDLE_EACH1(asin, double, __builtin_asin(a))
  HEDDLE_EACH1(acos, double, __builtin_acos(a))
  HEDDLE_EACH1(atan, double, __builtin_atan(a))
  HEDDLE_EACH1(sinh, double, __builtin_sinh(a))
  HEDDLE_EACH1(cosh, double, __builtin_cosh(a))
  HEDDLE_EACH1(asinh, double, __builtin_asinh(a))
  HEDDLE_EACH1(acosh, double, __builtin_acosh(a))
  HEDDLE_EACH1(atanh, double, __builtin_atanh(a))
  return set;
}

}  // namespace

extern const InstructionSet instructions_f32;
extern const InstructionSet instructions_f64;
constinit const InstructionSet instructions_f32 = make_f32();
constinit const InstructionSet instructions_f64 = make_f64();

}  // namespace heddle::cpu::HEDDLE_ISA
