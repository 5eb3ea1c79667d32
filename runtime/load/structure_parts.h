// Checks the parts of a net that can be checked on their own: names, declared types, contents, attributes. Used by structure.cc.
#pragma once

#include <string_view>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Checks text that is not a list entry of its own: UTF-8 without zero bytes, within the limit name_bytes. May be empty. Errors:
// limit_exceeded, syntax.
Status check_text(std::string_view text, const char* what, const Limits& limits);
// Checks a name like check_text, and that it is not empty.
Status check_name(std::string_view name, const char* what, const Limits& limits);
// Checks rank, dims and the bytes that the constant and bounded dims need. Errors: file_corrupt, unsupported, limit_exceeded.
Status check_type(const DeclaredType& type, const Limits& limits);
// Checks that the bytes match dtype and shape, and that booleans are 0 or 1. Errors: shape_mismatch, file_corrupt, limit_exceeded.
Status check_blob(const Blob& blob, const Limits& limits);
// Requires a constant type, and bytes of it or a reference. Errors: as above, weights_missing.
Status check_content(const Content& content, const DeclaredType& type, const Limits& limits);
// Requires content, or a rule that makes it.
Status check_variable(const Variable& variable, const Limits& limits);
// Does not descend into subnets. Errors: as above, attribute_mismatch.
Status check_attribute(const Attribute& attribute, const Limits& limits);

}  // namespace heddle
