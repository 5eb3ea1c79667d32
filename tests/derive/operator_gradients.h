// How each operator of a registry gives its gradient, according to its declaration and its examples.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "derive/node_gradient.h"
#include "plugin/registry.h"

namespace heddle::testing_derive {

struct OperatorGradient {
  const OperatorSchema* schema = nullptr;
  GradientForm form = GradientForm::none;
  // The outcome for the gradients of its examples, each in the dtypes that it may have and in real ones.
  bool tried = false;  // by some real input, of some real output
  bool gives = false;  // an input has one
  bool by_rows = false;
  std::set<std::string> refused;  // the reasons, if it has a gradient for other nodes

  // Whether it has real inputs and outputs; carries(): whether gradients may go through it.
  bool takes_reals() const;
  bool carries() const;
  bool gives_reals() const;
  std::vector<std::string> held() const;  // real inputs that carry no gradient by declaration
};

// By the name that messages use: "Add", "heddle::Copy".
std::map<std::string, OperatorGradient> operator_gradients(const std::shared_ptr<const RegistrySnapshot>& registry);

}  // namespace heddle::testing_derive
