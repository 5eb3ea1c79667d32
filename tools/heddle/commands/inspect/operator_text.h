// The declaration of an operator, for people and as JSON: ports, attributes, traits, gradient and examples.
#pragma once

#include <string>

#include "common/command.h"
#include "plugin/schema.h"

namespace heddle::tool {

Json operator_json(const OperatorSchema& schema);
// Prints what operator_json() has given, a line for each part.
void say_operator(const Json& json, const heddle_operator& op, const Report& report);
// Prints one part of an operator or of its kernels, as one line.
void say_part(const Report& report, const char* what, const std::string& text);
// Returns dtypes as words; "any dtype" for all of them.
std::string dtypes_text(const Json& dtypes);

}  // namespace heddle::tool
