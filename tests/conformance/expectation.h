// The result that the reference of a row gives for a call, and the allowed error of an operator.
#pragma once

#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/reference.h"
#include "operator_runner/operator_runner.h"
#include "plugin/schema.h"

namespace heddle::conformance {

struct Expectation {
  std::vector<Numbers> outputs;  // as many as the reference computes
  DType dtype = DType::none;     // of input 0, or of output 0
  Tolerance tolerance;
};

// Computes the expectation from the call's inputs, attributes, seed and step.
Expectation expectation(const Row& row, const OperatorSchema& schema, const OperatorCall& call);

}  // namespace heddle::conformance
