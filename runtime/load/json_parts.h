// Parts of the text form that can be read without the net around them: types, contents, attributes that are not nets.
#pragma once

#include <optional>

#include "base/text/json_document.h"
#include "heddle/status.h"
#include "load/json_fields.h"
#include "net/net.h"

namespace heddle {

// "dtype" and "dims" of a value, variable or tensor; both may be absent.
Status read_type(const JsonFields& fields, DeclaredType* type);
// "data" or "weights"; both may be absent, the structure check reports missing content.
Status read_content(const JsonFields& fields, const DeclaredType& type, Content* content);
// Reads {"int": 1} and the like. A subnet {"net": {...}} is returned unread in `subnet`.
Status read_attribute(JsonValue value, AttributeValue* attribute, std::optional<JsonValue>* subnet);

}  // namespace heddle
