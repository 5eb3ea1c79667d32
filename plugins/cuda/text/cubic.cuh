// The kernel of cubic interpolation, with the host's bits.
#ifndef HEDDLE_CUBIC_CUH
#define HEDDLE_CUBIC_CUH

HEDDLE_INLINE double cubic_weight(double distance, double a) {
  const double d = fabs(distance);
  if (d <= 1) return ((a + 2) * d - (a + 3)) * d * d + 1;
  if (d < 2) return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
  return 0;
}

#endif
