// The programs that the row of heddle::Pointwise calls. Between them they have every opcode of expression.h, which a test checks.
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/pointwise_cases.h"

namespace heddle::conformance {

struct PointwiseProgram {
  const char* text;
  // The program's result, written by hand. The dtype is that of the arithmetic, for intermediate values that wrap or are rounded.
  Number (*of)(const Inputs& x, DType dtype);
  // The ranges of the random numbers of each input; "" is the suite's own range.
  Names ranges;
  Names dtypes;
  // Comparisons and logic give bools.
  bool is_predicate = false;
  // The sum of the magnitudes of the intermediate terms; null: errors are relative to the result.
  Number (*scale)(const Inputs& x) = nullptr;
  // The program is called with special numbers too: no intermediate value overflows or is denormal unless the result shows it.
  bool takes_special = true;
};

const std::vector<PointwiseProgram>& pointwise_programs();

}  // namespace heddle::conformance
