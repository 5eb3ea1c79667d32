// The programs that the row of heddle::Pointwise calls. Between them they have every opcode of expression.h, which a test looks after.
#pragma once

#include <string>
#include <vector>

#include "conformance/cases/pointwise_cases.h"

namespace heddle::conformance {

struct PointwiseProgram {
  const char* text;
  // What it says, by hand. The dtype is that of the arithmetic, for what is wrapped or rounded on the way.
  Number (*of)(const Inputs& x, DType dtype);
  // Random numbers for each of the inputs; "" is the suite's own range.
  Names ranges;
  Names dtypes;
  // Comparisons and logic give bools.
  bool is_predicate = false;
  // The sum of the magnitudes of what is added on the way; none: errors are relative to the result.
  Number (*scale)(const Inputs& x) = nullptr;
  // Called with special numbers too: nothing overflows or is denormal on the way that the result doesn't show.
  bool takes_special = true;
};

const std::vector<PointwiseProgram>& pointwise_programs();

}  // namespace heddle::conformance
