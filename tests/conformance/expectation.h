// What the reference of a row says of a call, and how near an operator has to come.
#pragma once

#include <string>
#include <vector>

#include "conformance/judge.h"
#include "conformance/reference.h"
#include "operator_runner/operator_runner.h"
#include "plugin/schema.h"

namespace heddle::conformance {

struct Expectation {
  std::vector<Numbers> outputs;  // as many as the reference knows of
  DType dtype = DType::none;     // of input 0, or of output 0
  Tolerance tolerance;
};

// As the call's inputs, attributes, seed and step decide.
Expectation expectation(const Row& row, const OperatorSchema& schema, const OperatorCall& call);

}  // namespace heddle::conformance
