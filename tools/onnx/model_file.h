// Protobuf messages from untrusted files. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <memory>

#include "base/text/limit_names.h"
#include "heddle/status.h"

namespace heddle::importer {

// The file's message, parsed with a size limit (limits.file_bytes, at most protobuf's 2 GiB) and a nesting limit. Nothing about its
// content is checked. Errors: file_not_found, file_unreadable, limit_exceeded, file_corrupt.
Result<std::unique_ptr<::onnx::ModelProto>> read_model(const std::filesystem::path& file, const Limits& limits);
Result<std::unique_ptr<::onnx::TensorProto>> read_tensor(const std::filesystem::path& file, const Limits& limits);

}  // namespace heddle::importer
