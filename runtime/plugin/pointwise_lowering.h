// The program by which heddle::Pointwise computes an operator's pointwise expression.
#pragma once

#include <span>
#include <string>

#include "heddle/status.h"
#include "net/net.h"
#include "net/typed_net.h"
#include "plugin/schema.h"

namespace heddle {

// Canonical text over x0, x1, ... = the node's inputs by position; attributes (or their defaults) become numbers. `input_count` inputs are
// given, `present(i)` among them. Code::unsupported when the schema has no expression or it names an absent input or a non-numeric
// attribute.
Result<std::string> pointwise_program(const OperatorSchema& schema, const std::vector<Attribute>& attributes,
                                      const std::vector<bool>& present);

// Whether a node is heddle::Pointwise.
bool is_pointwise_node(const Node& node);
// Whether a resolved node is heddle::Pointwise, or its operator has an expression.
bool has_pointwise_form(const Node& node);
// The program of such a node over x0, x1, ... = its inputs, one for each. Code::unsupported as above, and for more than one output.
Result<expression::Program> pointwise_form(const Node& node);

// Whether heddle::Pointwise can replace the node: its operator has an expression, and its inputs that are not bool have one dtype, in which
// that is computed. (Pow of an f32 by an i64 has an expression, and kernels of its own.)
bool becomes_pointwise(const TypedNet& net, const Node& node);

}  // namespace heddle
