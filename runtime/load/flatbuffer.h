// The flatbuffer of schemas/net.fbs to and from Net. The payload alone; load/header.h has the bytes around it.
#pragma once

#include <cstddef>
#include <functional>
#include <span>

#include "base/limit_names.h"
#include "heddle/status.h"
#include "load/content_references.h"
#include "net/net.h"

namespace heddle {

// `payload` is untrusted, at least 16-byte aligned and not referred to afterwards.
Result<Net> net_from_flatbuffer(std::span<const std::byte> payload, const Limits& limits);

// Hands the payload of a net that check_whole_net accepts to `sink`. Errors: limit_exceeded at 2 GiB, and those of the sink.
Status net_to_flatbuffer(const Net& net, const ContentReferences& references,
                         const std::function<Status(std::span<const std::byte>)>& sink);

}  // namespace heddle
