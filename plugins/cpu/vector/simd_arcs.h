// Inverse trigonometric functions of float vectors, within one ulp; infinities, NaN and arguments outside the domain as in libm.
//
// Methods: Cody and Waite's reductions to a short interval, and polynomials that were fitted for this file (weighted least squares at
// Chebyshev nodes, reweighted towards the least largest error). Included only by files of heddle_isa_sources; everything is static.
#pragma once

#include "vector/simd.h"
#include "vector/simd_math.h"

namespace heddle::cpu::HEDDLE_ISA {

// pi / 2 and pi as the sum of two floats.
constexpr float half_pi = 1.57079637f, half_pi_rest = -4.37113883e-8f, whole_pi = 3.14159274f, whole_pi_rest = -8.74227766e-8f;

// c - s - rest, where c is larger than s: what the first difference loses goes into the second.
static inline VF difference(float c, VF s, VF rest) {
  const VF d = c - s;
  return d + (((c - d) - s) - rest);
}

// From 1/2 to 2, atan(a) = pi / 4 + atan((a - 1) / (a + 1)); above, pi / 2 - atan(1 / a).
static inline VD arctangent_quotient(VD a) {
  const VL middle = a < 2.0;
  return (middle ? a - 1.0 : splat<VD>(-1.0)) / (middle ? a + 1.0 : a);
}
static inline VF atan(VF x) {
  const VF a = abs(x);
  const VI near = a < 0.5f, middle = a < 2.0f;
  const Doubles d = widen(a);
  const Doubles exact = {arctangent_quotient(d.low), arctangent_quotient(d.high)};
  const VF quotient = narrow(exact);
  const Doubles rounded = widen(quotient);
  const VF lost = near ? VF{} : narrow({exact.low - rounded.low, exact.high - rounded.high});
  const VF r = near ? a : quotient;
  const VF z = r * r;
  const VF p = polynomial(z, splat<VF>(-5.132593587e-2f), 1.016001254e-1f, -1.417500973e-1f, 1.999422610e-1f, -3.333323300e-1f);
  const VF base = near ? VF{} : (middle ? splat<VF>(half_pi * 0.5f) : splat<VF>(half_pi));
  const VF rest = near ? VF{} : (middle ? splat<VF>(half_pi_rest * 0.5f) : splat<VF>(half_pi_rest));
  const VF sum = base + r;
  return copy_sign(sum + ((base - sum) + r + (fma(r * z, p, lost) + rest)), x);
}

// The parts of asin: of `root` and `correction`, whose sum it is for |x| up to 1/2, and half of pi / 2 - asin(|x|) above.
struct Arcsine {
  VI above;
  VF root, correction;
};
static inline Arcsine arcsine(VF x) {
  const VF a = abs(x);
  const VI above = a > 0.5f;
  const VF z = above ? (1.0f - a) * 0.5f : x * x;
  const VF root = sqrt(z);
  const VF lost = root > 0.0f ? fma(-root, root, z) * 0.5f / root : VF{};  // what the rounded root lacks
  const VF s = above ? root : a;
  const VF p = polynomial(z, splat<VF>(4.216630012e-2f), 2.417952009e-2f, 4.547037557e-2f, 7.495297492e-2f, 1.666675210e-1f);
  return {above, s, fma(s * z, p, above ? lost : VF{})};
}
static inline VF asin(VF x) {
  const Arcsine part = arcsine(x);
  const VF far = difference(half_pi, part.root * 2.0f, part.correction * 2.0f - half_pi_rest);
  return copy_sign(part.above ? far : part.root + part.correction, x);
}
static inline VF acos(VF x) {
  const Arcsine part = arcsine(x);
  const VF near = difference(half_pi, x, copy_sign(part.correction, x) - half_pi_rest);
  const VF twice = part.root * 2.0f, rest = part.correction * 2.0f;
  return part.above ? (x > 0.0f ? twice + rest : difference(whole_pi, twice, rest - whole_pi_rest)) : near;
}

}  // namespace heddle::cpu::HEDDLE_ISA
