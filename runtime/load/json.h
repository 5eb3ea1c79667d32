// The text form of a net: JSON, one value and one operator per line, so that differences read well. Lossless both ways: the text
// of a net gives the same binary file, and a binary file the same text. Described in docs/net_format.md, docs/net.schema.json.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "load/content_references.h"
#include "net/net.h"

namespace heddle {

inline constexpr int64_t net_json_version = 1;  // of the member "heddle"

// `text` is untrusted.
Result<std::vector<Net>> nets_from_json(std::string_view text, const Limits& limits);
// Reads a text with one net. Errors also: invalid_argument, there are several.
Result<Net> net_from_json(std::string_view text, const Limits& limits);
// Writes nets that check_whole_nets accepts.
std::string nets_to_json_text(std::span<const Net> nets, const ContentReferences& references);

}  // namespace heddle
