// save: Net → file. The inverse of load; a saved net loads again as an equal net.
//
// The bytes depend only on the net and the options. Files are replaced as a whole (written beside, synced, renamed), the weights file
// before the net. The net keeps the identity of its weights: when a crash or another writer comes between the two, the files do not load
// (weights_mismatch) instead of running with the wrong numbers. Threads: concurrent calls for different paths.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct SaveOptions {
  // Content of constants and variables up to this size is stored in the net's file; larger content goes to NET.safetensors beside it.
  int64_t inline_bytes = 4096;
  // Content that came from a weights file keeps referring to it and is not written again: for a net saved into the folder that it
  // was loaded from (convert). The weights need not be attached then.
  bool keep_references = false;
  Limits limits;
};

// Where save_net puts the large contents of a net: beside it, NET.safetensors.
std::filesystem::path weights_path(const std::filesystem::path& net);

// Writes `path`: the JSON text form when it ends in ".json", else the binary form. Without keep_references every content must be attached.
// Errors: invalid_argument (the weights would go to the same file), file_unwritable, weights_missing, limit_exceeded (2 GiB per net file),
// and the errors that load would find in the net.
Status save_net(const Net& net, const std::filesystem::path& path, const SaveOptions& options = {});
// Writes several nets to one file, each with a name of its own. Common parts are stored once: content of the same bytes in memory, and
// variables of one name, type and content.
Status save_nets(std::span<const Net> nets, const std::filesystem::path& path, const SaveOptions& options = {});

// The two forms as bytes. Content with a reference is written as reference, all other content as literal.
Result<std::vector<std::byte>> nets_to_bytes(std::span<const Net> nets, const Limits& limits = {});
Result<std::string> nets_to_json(std::span<const Net> nets, const Limits& limits = {});
inline Result<std::vector<std::byte>> net_to_bytes(const Net& net, const Limits& limits = {}) {
  return nets_to_bytes({&net, 1}, limits);
}
inline Result<std::string> net_to_json(const Net& net, const Limits& limits = {}) {
  return nets_to_json({&net, 1}, limits);
}

}  // namespace heddle
