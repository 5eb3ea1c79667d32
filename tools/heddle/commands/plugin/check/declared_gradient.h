// The gradient that an operator declares, run on host tensors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "operator_runner/operator_runner.h"

namespace heddle::tool {

// Gradients of a call's inputs, null where there is none; or the mistake.
struct Gradients {
  std::vector<std::shared_ptr<const Blob>> of_inputs;
  std::string wrong;
  bool refused = false;  // the operator says that it has none for this call (HEDDLE_ERROR_UNSUPPORTED)
};

bool declares_gradient(const OperatorSchema& schema);

// Runs emitted nodes or a callback at once, by run_operator(). `outputs` are the call's; `output_gradients` is null for those that have no
// gradient.
Gradients run_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                       const std::vector<std::shared_ptr<const Blob>>& outputs,
                       const std::vector<std::shared_ptr<const Blob>>& output_gradients);

}  // namespace heddle::tool
