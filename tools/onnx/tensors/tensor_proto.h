// Tensors in ONNX's TensorProto form (.pb files of backend test folders): file → Blob and back. Any thread; files are untrusted.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct NamedTensor {
  std::string name;  // may be empty
  std::shared_ptr<const Blob> blob;
};

// The tensor in the file. Errors: file_not_found, file_unreadable, file_corrupt, limit_exceeded, unsupported (strings and other
// element types that Heddle does not have).
Result<NamedTensor> read_tensor_proto(const std::filesystem::path& file, const Limits& limits = {});

// Writes `blob` as a TensorProto with raw data, replacing `file` by rename. Errors: file_unwritable, limit_exceeded (2 GiB is
// protobuf's end).
Status write_tensor_proto(const std::filesystem::path& file, const std::string& name, const Blob& blob);

}  // namespace heddle
