// Nets written by hand refer to weights without an identity: their checksums are recorded when such a net is converted.
#pragma once

#include <filesystem>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// For every reference without a checksum (subnets too), records that of the tensor as it is now, read once where the file does not have it,
// and the file's identity. References to files or tensors that do not exist stay as they are: attach_weights reports them. Errors: file_*.
Status record_checksums(Net& net, const std::filesystem::path& folder, const Limits& limits);

}  // namespace heddle
