// The operations of pointwise expressions on elements of one type, as the evaluators of expression_evaluate.h use them; that header has the
// rules. The runtime's own kernels have vector versions of these operations; a test compares the two.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "heddle/expression_opcodes.h"

namespace heddle {
namespace expression {
namespace detail {

// Converts a literal of the text to an element. Integer literals saturate at the type's range.
template <class T>
T converted(double literal) {
  if constexpr (std::is_floating_point<T>::value) {
    return static_cast<T>(literal);
  } else {
    using Limits = std::numeric_limits<T>;
    if (literal <= static_cast<double>(Limits::min())) return Limits::min();
    if (literal >= static_cast<double>(Limits::max())) return Limits::max();
    return static_cast<T>(literal);
  }
}

template <class T>
T truth(bool value) {
  return value ? T(1) : T(0);
}

// ---------------------------------------------------------------- integers

// Computes f on unsigned integers, for which overflow is defined: the result wraps.
template <class T, class F>
T wrapped(T a, T b, F f) {
  using Unsigned = std::make_unsigned_t<T>;
  return static_cast<T>(f(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
}
template <class T>
bool is_negative(T a) {
  if constexpr (std::is_signed<T>::value)
    return a < 0;
  else
    return a != a;
}
template <class T>
bool is_minus_one(T a) {
  return std::is_signed<T>::value && a == static_cast<T>(-1);
}
template <class T>
T sum(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x + y; });
}
template <class T>
T difference(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x - y; });
}
template <class T>
T product(T a, T b) {
  return wrapped(a, b, [](auto x, auto y) { return x * y; });
}
template <class T>
T quotient(T a, T b) {
  return b == 0 ? T(0) : is_minus_one(b) ? difference(T(0), a) : static_cast<T>(a / b);
}
template <class T>
T remainder(T a, T b) {
  return b == 0 || is_minus_one(b) ? T(0) : static_cast<T>(a % b);
}
template <class T>
T floored_remainder(T a, T b) {
  const T r = remainder(a, b);
  return r != 0 && is_negative(r) != is_negative(b) ? sum(r, b) : r;
}
template <class T>
T power(T base, T exponent) {
  const bool odd = (exponent & 1) != 0;
  if (is_negative(exponent)) return base == 1 ? base : !is_minus_one(base) ? T(0) : odd ? base : T(1);
  T result = 1;
  for (; exponent != 0; exponent = static_cast<T>(exponent >> 1)) {
    if (exponent & 1) result = product(result, base);
    base = product(base, base);
  }
  return result;
}
template <class T>
bool is_within_width(T by) {
  return !is_negative(by) && by < static_cast<T>(8 * sizeof(T));
}
template <class T>
T shifted_left(T a, T by) {
  return is_within_width(by) ? wrapped(a, by, [](auto x, auto y) { return x << y; }) : T(0);
}
template <class T>
T shifted_right(T a, T by) {
  return is_within_width(by) ? static_cast<T>(a >> by) : T(0);
}

// ---------------------------------------------------------------- floats

// The remainder of std::fmod is exact. Only the addition of `b`, where the signs differ, may round.
template <class T>
T remainder_of_divisors_sign(T a, T b) {
  const T r = std::fmod(a, b);
  if (r != T(0)) return (r < T(0)) != (b < T(0)) ? r + b : r;
  return std::copysign(T(0), b);
}
// Computes a single exponential. Its argument is never positive, so the exponential can not overflow to infinity.
template <class T>
T sigmoid(T a) {
  const T e = std::exp(-std::fabs(a));
  return (a < T(0) ? e : T(1)) / (T(1) + e);
}
template <class T>
T float_power(T a, T b) {
  return b == T(1) ? a : b == T(2) ? a * a : std::pow(a, b);
}

// ---------------------------------------------------------------- by opcode

#define HEDDLE_OPERATION1_(op, expression)    \
  case Opcode::op:                            \
    use([](T a) -> T { return expression; }); \
    return true;
#define HEDDLE_OPERATION2_(op, expression)         \
  case Opcode::op:                                 \
    use([](T a, T b) -> T { return expression; }); \
    return true;

// Calls use(f) with the function of one, two or three elements that `op` stands for. Returns false if `op` is not in this group, or not
// defined for T.
template <class T, class Use>
bool with_comparison(Opcode op, Use&& use) {
  switch (op) {
    HEDDLE_OPERATION2_(min, (a < b || a != a) ? a : b)
    HEDDLE_OPERATION2_(max, (a > b || a != a) ? a : b)
    HEDDLE_OPERATION2_(lt, truth<T>(a < b))
    HEDDLE_OPERATION2_(le, truth<T>(a <= b))
    HEDDLE_OPERATION2_(gt, truth<T>(a > b))
    HEDDLE_OPERATION2_(ge, truth<T>(a >= b))
    HEDDLE_OPERATION2_(eq, truth<T>(a == b))
    HEDDLE_OPERATION2_(ne, truth<T>(a != b))
    HEDDLE_OPERATION2_(logical_and, truth<T>(a != T(0) && b != T(0)))
    HEDDLE_OPERATION2_(logical_or, truth<T>(a != T(0) || b != T(0)))
    HEDDLE_OPERATION2_(logical_xor, truth<T>((a != T(0)) != (b != T(0))))
    HEDDLE_OPERATION1_(logical_not, truth<T>(a == T(0)))
    case Opcode::select:
      use([](T a, T b, T c) -> T { return a != T(0) ? b : c; });
      return true;
    default:
      return false;
  }
}

template <class T, class Use>
bool with_integer_operation(Opcode op, Use&& use) {
  switch (op) {
    HEDDLE_OPERATION2_(add, sum(a, b))
    HEDDLE_OPERATION2_(sub, difference(a, b))
    HEDDLE_OPERATION2_(mul, product(a, b))
    HEDDLE_OPERATION2_(div, quotient(a, b))
    HEDDLE_OPERATION2_(pow, power(a, b))
    HEDDLE_OPERATION2_(mod, floored_remainder(a, b))
    HEDDLE_OPERATION2_(fmod, remainder(a, b))
    HEDDLE_OPERATION2_(bit_and, a & b)
    HEDDLE_OPERATION2_(bit_or, a | b)
    HEDDLE_OPERATION2_(bit_xor, a ^ b)
    HEDDLE_OPERATION2_(shift_left, shifted_left(a, b))
    HEDDLE_OPERATION2_(shift_right, shifted_right(a, b))
    HEDDLE_OPERATION1_(neg, difference(T(0), a))
    HEDDLE_OPERATION1_(abs, is_negative(a) ? difference(T(0), a) : a)
    HEDDLE_OPERATION1_(sign, is_negative(a) ? static_cast<T>(-1) : truth<T>(a != 0))
    HEDDLE_OPERATION1_(bit_not, static_cast<T>(~a))
    HEDDLE_OPERATION1_(floor, a)
    HEDDLE_OPERATION1_(ceil, a)
    HEDDLE_OPERATION1_(round, a)
    default:
      return false;
  }
}

template <class T, class Use>
bool with_float_operation(Opcode op, Use&& use) {
  switch (op) {
    HEDDLE_OPERATION2_(add, a + b)
    HEDDLE_OPERATION2_(sub, a - b)
    HEDDLE_OPERATION2_(mul, a * b)
    HEDDLE_OPERATION2_(div, a / b)
    HEDDLE_OPERATION2_(pow, float_power(a, b))
    HEDDLE_OPERATION2_(mod, remainder_of_divisors_sign(a, b))
    HEDDLE_OPERATION2_(fmod, std::fmod(a, b))
    HEDDLE_OPERATION1_(neg, -a)
    HEDDLE_OPERATION1_(abs, std::fabs(a))
    HEDDLE_OPERATION1_(sign, a > T(0) ? T(1) : (a < T(0) ? T(-1) : (a != a ? a : T(0))))
    HEDDLE_OPERATION1_(floor, std::floor(a))
    HEDDLE_OPERATION1_(ceil, std::ceil(a))
    HEDDLE_OPERATION1_(round, std::nearbyint(a))
    HEDDLE_OPERATION1_(exp, std::exp(a))
    HEDDLE_OPERATION1_(log, std::log(a))
    HEDDLE_OPERATION1_(sqrt, std::sqrt(a))
    HEDDLE_OPERATION1_(rsqrt, T(1) / std::sqrt(a))
    HEDDLE_OPERATION1_(reciprocal, T(1) / a)
    HEDDLE_OPERATION1_(tanh, std::tanh(a))
    HEDDLE_OPERATION1_(erf, std::erf(a))
    HEDDLE_OPERATION1_(sigmoid, sigmoid(a))
    HEDDLE_OPERATION1_(sin, std::sin(a))
    HEDDLE_OPERATION1_(cos, std::cos(a))
    HEDDLE_OPERATION1_(tan, std::tan(a))
    HEDDLE_OPERATION1_(asin, std::asin(a))
    HEDDLE_OPERATION1_(acos, std::acos(a))
    HEDDLE_OPERATION1_(atan, std::atan(a))
    HEDDLE_OPERATION1_(sinh, std::sinh(a))
    HEDDLE_OPERATION1_(cosh, std::cosh(a))
    HEDDLE_OPERATION1_(asinh, std::asinh(a))
    HEDDLE_OPERATION1_(acosh, std::acosh(a))
    HEDDLE_OPERATION1_(atanh, std::atanh(a))
    HEDDLE_OPERATION1_(log1p, std::log1p(a))
    HEDDLE_OPERATION1_(expm1, std::expm1(a))
    HEDDLE_OPERATION1_(isnan, truth<T>(a != a))
    HEDDLE_OPERATION1_(isinf, truth<T>(std::fabs(a) == std::numeric_limits<T>::infinity()))
    default:
      return false;
  }
}

#undef HEDDLE_OPERATION1_
#undef HEDDLE_OPERATION2_

template <class T, class Use>
bool with_operation(Opcode op, Use&& use) {
  static_assert(std::is_same<T, float>::value || std::is_same<T, double>::value || std::is_same<T, int32_t>::value ||
                    std::is_same<T, int64_t>::value || std::is_same<T, uint64_t>::value,
                "the runtime computes in float, double, int32_t, int64_t and uint64_t: convert narrower elements");
  if (with_comparison<T>(op, use)) return true;
  if constexpr (std::is_floating_point<T>::value)
    return with_float_operation<T>(op, use);
  else
    return with_integer_operation<T>(op, use);
}

}  // namespace detail
}  // namespace expression
}  // namespace heddle
