// Compares tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "heddle/session.h"

namespace heddle::tool {

struct Comparison {
  bool equal = true;
  double max_abs_error = 0;
  double max_rel_error = 0;
  std::string reason;     // of the first difference
  int64_t different = 0;  // elements that are too far off
  int64_t worst = -1;     // the one of them with the largest difference, nan and inf before numbers; none: of another type
};

// Tolerances for floats: |a - e| <= atol + rtol * |e|. Values that are not given are derived (tolerance_for).
struct Tolerances {
  std::optional<double> rtol, atol;
};

// The tolerances for outputs of this content: those that are given; else rtol 1e-3 and an atol of 1e-5 of the largest finite magnitude
// expected. An output of zeros has no scale: there the atol is 1e-7, as in ONNX's own tests.
struct Tolerance {
  double rtol = 0, atol = 0;
};
Tolerance tolerance_for(const TensorView& expected, const Tolerances& given);

// |a - e| <= atol + rtol * |e| for floats, integers exact, nan equals nan.
Comparison compare(const TensorView& actual, const TensorView& expected, double rtol, double atol);
// For results of random operators: dtype and shape as above; mean and spread as close as that many numbers of one distribution are (six
// standard errors). The numbers themselves are not compared.
Comparison compare_moments(const TensorView& actual, const TensorView& expected);

}  // namespace heddle::tool
