// The declaration of an operator, for people and as JSON: ports, attributes, traits, gradient and examples.
#pragma once

#include <string>
#include <vector>

#include "common/command.h"
#include "plugin/schema.h"

namespace heddle::tool {

Json operator_json(const OperatorSchema& schema);
// A reference has these parts for an operator, in this order, beside its name and description.
struct OperatorPart {
  const char* kind;  // "input", "attribute", "example", ...
  std::string name;  // of the port or attribute; empty for other kinds
  std::string text;
};
std::vector<OperatorPart> operator_parts(const Json& json, const OperatorSchema& schema);
// Returns a text up to the end of its first sentence.
std::string first_sentence(const std::string& text);
// Prints what operator_json() has given, a line for each part.
void say_operator(const Json& json, const OperatorSchema& schema, const Report& report);
// Prints one part of an operator or of its kernels, as one line.
void say_part(const Report& report, const char* what, const std::string& text);
// Returns dtypes as words; "any dtype" for all of them.
std::string dtypes_text(const Json& dtypes);

}  // namespace heddle::tool
