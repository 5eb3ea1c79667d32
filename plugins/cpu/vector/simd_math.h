// Elementary functions of float vectors, a few ulp over the whole range; infinities, NaN and denormals give the results of libm.
//
// Methods: argument reduction by powers of two and short polynomials. exp, log and tanh use the coefficients of Cephes (Moshier,
// netlib.org/cephes); erf's were fitted for this file (weighted least squares at Chebyshev nodes). pow, sin, cos, tan, log1p and expm1
// are computed in double precision from series. Included only by files of heddle_isa_sources; everything is static.
#pragma once

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

// Horner's rule: coefficients from the highest power down.
template <class V>
static inline V polynomial(V, V sum) {
  return sum;
}
template <class V, class T, class... More>
static inline V polynomial(V x, V sum, T next, More... more) {
  return polynomial(x, fma(sum, x, next), more...);
}

// 2^n for integral n within the exponent range.
static inline VF power_of_two(VI n) {
  return cast_bits<VF>((n + 127) << 23);
}

// exp for x in [-104, 89], or NaN. `near`: x is in [-80, 80], where 2^n is one normal factor.
template <bool near>
static inline VF exp_limited(VF x) {
  const VF magic = splat<VF>(12582912.0f);  // 1.5 * 2^23: rounds to an integer
  const VF shifted = fma(x, splat<VF>(1.44269504088896341f), magic);
  const VF k = shifted - magic;
  VF r = fma(k, splat<VF>(-0.693359375f), x);
  r = fma(k, splat<VF>(2.12194440e-4f), r);
  const VF p =
      polynomial(r, splat<VF>(1.9875691500e-4f), 1.3981999507e-3f, 8.3334519073e-3f, 4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f);
  const VF y = fma(p, r * r, r) + 1.0f;
#if defined(__AVX512F__)
  return (VF)_mm512_maskz_scalef_ps(0xffff, (__m512)y, (__m512)k);
#else
  const VI n = cast_bits<VI>(shifted) - cast_bits<VI>(magic);
  if constexpr (near) return y * power_of_two(n);
  const VI half = n >> 1;  // two factors: the product may be a denormal or infinite
  return y * power_of_two(half) * power_of_two(n - half);
#endif
}
// A result that is too small becomes 0 by a choice: an operation that underflows takes a hundred times as long, and the masks of attention
// make many of them.
static inline VF exp(VF x) {
  const VI gone = x < -104.0f;
  const VF y = exp_limited<false>(gone ? splat<VF>(0.0f) : smaller_or_second(splat<VF>(89.0f), x));  // NaN stays
  return gone ? splat<VF>(0.0f) : y;
}

static inline VF log(VF x) {
  const VI tiny = x < 1.17549435e-38f;
  const VF scaled = tiny ? x * 8388608.0f : x;
  VI bits = cast_bits<VI>(scaled);
  // Mantissa in [sqrt(1/2), sqrt(2)).
  const VI e = ((bits - 0x3f3504f3) >> 23) + (tiny ? splat<VI>(-23) : splat<VI>(0));
  const VF m = cast_bits<VF>(bits - ((bits - 0x3f3504f3) & static_cast<int32_t>(0xff800000))) - 1.0f;
  const VF k = __builtin_convertvector(e, VF);
  const VF p = polynomial(m, splat<VF>(7.0376836292e-2f), -1.1514610310e-1f, 1.1676998740e-1f, -1.2420140846e-1f, 1.4249322787e-1f,
                          -1.6668057665e-1f, 2.0000714765e-1f, -2.4999993993e-1f, 3.3333331174e-1f);
  const VF z = m * m;
  VF y = p * m * z;
  y = fma(k, splat<VF>(-2.12194440e-4f), y);
  y = fma(z, splat<VF>(-0.5f), y);
  VF r = fma(k, splat<VF>(0.693359375f), m + y);
  r = x > 3.40282347e38f ? x : r;
  r = x == 0.0f ? splat<VF>(-__builtin_inff()) : r;
  return ((x < 0.0f) | (x != x)) ? splat<VF>(__builtin_nanf("")) : r;
}

// 1 / (1 + exp(-x)), relative accuracy for both signs.
static inline VF sigmoid(VF x) {
  const VF below = cast_bits<VF>(cast_bits<VI>(x) | static_cast<int32_t>(0x80000000));  // -|x|
  const VF e = exp(below);
  const VF numerator = x < 0.0f ? e : splat<VF>(1.0f);
  return numerator / (e + 1.0f);
}

static inline VF tanh(VF x) {
  const VF a = abs(x);
  const VF z = x * x;
  const VF small = fma(
      polynomial(z, splat<VF>(-5.70498872745e-3f), 2.06390887954e-2f, -5.37397155531e-2f, 1.33314422036e-1f, -3.33332819422e-1f) * z, x, x);
  const VF large = 1.0f - 2.0f / (exp_limited<true>(smaller_or_second(splat<VF>(20.0f), a + a)) + 1.0f);
  return copy_sign(a < 0.625f ? small : large, x);  // also for zeros
}

static inline VF erf(VF x) {
  const VF a = abs(x);
  const VF z = x * x;
  // x + x * P(x^2) below, 1 - exp(-|x| * Q(|x|)) above; from 4 on the result is 1.
  const VF small =
      fma(polynomial(z, splat<VF>(-6.013036742e-4f), 4.997932652e-3f, -2.677018662e-2f, 1.128192598e-1f, -3.761250556e-1f, 1.283791516e-1f),
          x, x);
  const VF t = smaller_or_second(splat<VF>(4.0f), a);
  const VF tail =
      t * polynomial(t, splat<VF>(-2.135329888e-4f), 3.211318277e-3f, -2.287861231e-2f, 1.052446641e-1f, 6.357309296e-1f, 1.128510762f);
  return ((a < 0.921875f) | (x != x)) ? small : copy_sign(1.0f - exp_limited<true>(-tail), x);
}

// gelu, 0.5 * x * (1 + erf(x / sqrt(2))), in the given form: by a product or a quotient, and with the factors in one of three orders. Each
// gives the bits of its separate operations.
enum class GeluOrder { half_of_x_first, half_last, half_of_sum_first };
template <bool divides, GeluOrder order>
static inline VF gelu(VF x) {
  const VF sum = erf(divides ? x / 1.41421356237309505f : x * 0.707106781186547524f) + 1.0f;
  if constexpr (order == GeluOrder::half_of_x_first) return x * 0.5f * sum;
  if constexpr (order == GeluOrder::half_last) return x * sum * 0.5f;
  return x * (sum * 0.5f);
}

// ---------------------------------------------------------------- by way of double

static inline VD power_of_two(VL n) {
  return cast_bits<VD>((n + 1023) << 52);
}
// The integral part as an integer, for |x| < 2^51.
static inline VL nearest(VD x, VD* rounded) {
  const VD magic = splat<VD>(6755399441055744.0);
  const VD shifted = x + magic;
  *rounded = shifted - magic;
  return cast_bits<VL>(shifted) - cast_bits<VL>(magic);
}

// exp(x) to about 1e-11, |x| < 700.
static inline VD exp_series(VD x) {
  VD k;
  const VL n = nearest(x * 1.4426950408889634, &k);
  VD r = fma(k, splat<VD>(-0.69314718055989033), x);
  r = fma(k, splat<VD>(-5.4979230187083712e-14), r);
  const VD p = polynomial(r, splat<VD>(1.0 / 3628800), 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6, 0.5,
                          1.0, 1.0);
  return p * power_of_two(n);
}

// log(numerator / denominator) + e * ln 2, the quotient in [sqrt(1/2), sqrt(2)), given their difference and sum; to about 1e-12.
static inline VD log_series(VD difference, VD sum, VD e) {
  const VD s = difference / sum;
  const VD z = s * s;
  const VD p = polynomial(z, splat<VD>(1.0 / 17), 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0);
  return fma(e, splat<VD>(0.69314718055994531), 2.0 * s * p);
}
struct Split {
  VD mantissa, exponent;
};
// x = mantissa * 2^exponent, mantissa in [sqrt(1/2), sqrt(2)); x a positive normal double.
static inline Split split(VD x) {
  const VL offset = cast_bits<VL>(x) - 0x3fe6a09e667f3bcd;
  const VL e = offset >> 52;
  return {cast_bits<VD>(cast_bits<VL>(x) - (e << 52)), __builtin_convertvector(e, VD)};
}

static inline VD log_double(VD x) {
  const Split s = split(x);
  return log_series(s.mantissa - 1.0, s.mantissa + 1.0, s.exponent);
}
// x to the power of 1/2: the square root, but never -0, and infinity of either infinity.
template <class V>
static inline V root_power(V x) {
  return x == -__builtin_inf() ? -x : sqrt(x) + 0;
}
static inline VD pow_double(VD x, VD y) {
  VD t = y * log_double(x);
  t = t > 200.0 ? splat<VD>(200.0) : (t < -200.0 ? splat<VD>(-200.0) : t);
  return exp_series(t);
}
// Lanes where x is not positive and finite or y not finite go through libm. Each lane is computed on its own: an element's value must not
// depend on those that happen to be computed with it. The powers for which the compiler of programs has cheaper operations, where y is a
// constant, give the results of these.
static inline VF pow(VF x, VF y) {
  const float largest = 3.40282347e38f;
  const VI odd = ~((x > 0.0f) & (x <= largest) & (abs(y) <= largest));
  const Doubles a = widen(x), b = widen(y);
  VF r = narrow({pow_double(a.low, b.low), pow_double(a.high, b.high)});
  if (any(odd))
    for (int i = 0; i < lanes<float>; ++i)
      if (odd[i]) r[i] = __builtin_powf(x[i], y[i]);
  const VF root = root_power(x);
  r = y == 3.0f ? x * x * x : r;
  r = y == 2.0f ? x * x : r;
  r = y == 0.5f ? root : r;
  r = y == -0.5f ? 1.0f / root : r;
  r = y == -1.0f ? 1.0f / x : r;
  return y == 1.0f ? x : r;
}

static inline VD log1p_double(VD x) {
  const VD u = x + 1.0;
  const Split s = split(u);
  const VL near = s.exponent == 0.0;
  return log_series(near ? x : s.mantissa - 1.0, near ? x + 2.0 : s.mantissa + 1.0, s.exponent);
}
static inline VF log1p(VF x) {
  const Doubles d = widen(x);
  VF r = narrow({log1p_double(d.low), log1p_double(d.high)});
  r = x > 3.40282347e38f ? x : r;
  r = x == 0.0f ? x : r;
  r = x == -1.0f ? splat<VF>(-__builtin_inff()) : r;
  return ((x < -1.0f) | (x != x)) ? splat<VF>(__builtin_nanf("")) : r;
}

static inline VD expm1_double(VD x) {
  const VD clamped = x > 200.0 ? splat<VD>(200.0) : (x < -200.0 ? splat<VD>(-200.0) : x);
  return abs(x) < 1e-5 ? fma(x * 0.5, x, x) : exp_series(clamped) - 1.0;
}
static inline VF expm1(VF x) {
  const Doubles d = widen(x);
  return x == 0.0f ? x : narrow({expm1_double(d.low), expm1_double(d.high)});
}

// Sine and cosine of r in [-pi/4, pi/4] to about 1e-11.
static inline VD sine_series(VD r) {
  const VD z = r * r;
  return fma(polynomial(z, splat<VD>(-1.0 / 39916800), 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6) * z, r, r);
}
static inline VD cosine_series(VD r) {
  const VD z = r * r;
  return polynomial(z, splat<VD>(1.0 / 479001600), -1.0 / 3628800, 1.0 / 40320, -1.0 / 720, 1.0 / 24, -0.5, 1.0);
}
struct Quadrant {
  VD r;
  VL n;
};
// x = n * pi/2 + r for |x| < 2^20; three parts of pi/2, the first two exact in products with n.
static inline Quadrant quadrant(VD x) {
  VD k;
  const VL n = nearest(x * 0.63661977236758134, &k);
  VD r = fma(k, splat<VD>(-1.57079632673412561417e+00), x);
  r = fma(k, splat<VD>(-6.07710050630396597660e-11), r);
  return {fma(k, splat<VD>(-2.02226624879595063154e-21), r), n};
}
static inline VD sin_double(VD x, int64_t shift) {
  const Quadrant q = quadrant(x);
  const VL n = q.n + shift;
  const VD v = (n & 1) != 0 ? cosine_series(q.r) : sine_series(q.r);
  return cast_bits<VD>(cast_bits<VL>(v) ^ ((n & 2) << 62));
}
static inline VD tan_double(VD x) {
  const Quadrant q = quadrant(x);
  const VD s = sine_series(q.r), c = cosine_series(q.r);
  return (q.n & 1) != 0 ? -c / s : s / c;
}
// Large arguments go through libm, each lane for itself.
#define HEDDLE_TRIGONOMETRIC_(name, expression)                                      \
  static inline VF name(VF x) {                                                      \
    const VI far = ~(abs(x) < 1048576.0f);                                           \
    const Doubles d = widen(x);                                                      \
    auto one = [](VD v) { return expression; };                                      \
    VF r = x == 0.0f ? (sign_of_zero_##name(x)) : narrow({one(d.low), one(d.high)}); \
    if (any(far))                                                                    \
      for (int i = 0; i < lanes<float>; ++i)                                         \
        if (far[i]) r[i] = __builtin_##name##f(x[i]);                                \
    return r;                                                                        \
  }
static inline VF sign_of_zero_sin(VF x) {
  return x;
}
static inline VF sign_of_zero_cos(VF) {
  return splat<VF>(1.0f);
}
static inline VF sign_of_zero_tan(VF x) {
  return x;
}
HEDDLE_TRIGONOMETRIC_(sin, sin_double(v, 0))
HEDDLE_TRIGONOMETRIC_(cos, sin_double(v, 1))
HEDDLE_TRIGONOMETRIC_(tan, tan_double(v))
#undef HEDDLE_TRIGONOMETRIC_

}  // namespace heddle::cpu::HEDDLE_ISA
