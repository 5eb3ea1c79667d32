// load: bytes → Nets. Reads .heddle and .json files, distinguished by content.
//
// Everything that can be checked without operator schemas is checked here, whatever the bytes: header and checksum, flatbuffer structure,
// limits, names, indices, one producer per value, program order, declared types, literals, weights. A net that is returned is structurally
// sound; resolve and infer check the operators. Formats: docs/net_format.md. Threads: all functions may be called concurrently. Nothing
// refers to the input bytes afterwards.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <vector>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct LoadOptions {
  Limits limits;
  bool attach_weights = true;     // false: contents that live in weights files keep a null blob (weights/attach.h does it later)
  bool verify_checksums = false;  // read every referenced tensor once and compare its xxh64
  bool map_weights = true;        // false: weights are read into memory, so that later changes of the file have no effect
};

// Returns the nets in `path`, in the order of the file; their weights are searched beneath the folder of `path`. On failure the first
// finding, all others attached. Errors: file_not_found, file_unreadable, file_truncated, file_corrupt, file_version, syntax (JSON),
// duplicate_name, dangling_input, cycle, hazard, shape_mismatch, attribute_mismatch, limit_exceeded, weights_*.
Result<std::vector<Net>> load_nets(const std::filesystem::path& path, const LoadOptions& options = {});
// The net of a file that holds one. Errors also: invalid_argument, naming the nets of a file that holds several.
Result<Net> load_net(const std::filesystem::path& path, const LoadOptions& options = {});

// Loads nets from memory, of any alignment. `folder` is where weights are searched; empty: a net that refers to weights files fails with
// weights_missing (unless attach_weights is false).
Result<std::vector<Net>> load_nets_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                                         const LoadOptions& options = {});
Result<Net> load_net_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder, const LoadOptions& options = {});

}  // namespace heddle
