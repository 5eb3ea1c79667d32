// Converts between the flatbuffer of schemas/net.fbs and the nets of a file, one or more. The payload alone; load/header.h has the bytes
// around it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "load/content_references.h"
#include "net/net.h"

namespace heddle {

// `payload` is untrusted, at least 16-byte aligned and not referred to afterwards.
Result<std::vector<Net>> nets_from_flatbuffer(std::span<const std::byte> payload, const Limits& limits);

// Passes the payload of nets that check_whole_nets accepts to `sink`. Errors: limit_exceeded at 2 GiB, and those of the sink.
Status nets_to_flatbuffer(std::span<const Net> nets, const ContentReferences& references,
                          const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace heddle
