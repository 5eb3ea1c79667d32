// How each operator of a registry gives its gradient, as its declaration says and its examples show.
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
  // What came of the gradients of its examples, each in the dtypes that it may have and in real ones.
  bool tried = false;  // by some real input, of some real output
  bool gives = false;  // an input has one
  bool by_rows = false;
  std::set<std::string> refused;  // why, where it has one for other nodes

  // Ports that real numbers may come in and go out by; `carrying`: that gradients may go through.
  bool takes_reals() const;
  bool carries() const;
  bool gives_reals() const;
  std::vector<std::string> held() const;  // real inputs that no gradient goes through by declaration
};

// By name as messages have it: "Add", "heddle::Copy".
std::map<std::string, OperatorGradient> operator_gradients(const std::shared_ptr<const RegistrySnapshot>& registry);

}  // namespace heddle::testing_derive
