// The program that makes heddle::Pointwise do what an operator's pointwise expression says.
#pragma once

#include <span>
#include <string>

#include "heddle/status.h"
#include "net/net.h"
#include "plugin/schema.h"

namespace heddle {

// Canonical text over x0, x1, ... = the node's inputs by position; attributes (or their defaults) become numbers. `input_count` inputs are
// given, `present(i)` among them. Code::unsupported when the schema has no expression or it names an absent input or a non-numeric
// attribute.
Result<std::string> pointwise_program(const OperatorSchema& schema, const std::vector<Attribute>& attributes,
                                      const std::vector<bool>& present);

}  // namespace heddle
