#include "onnx/model_file.h"

#include <fmt/format.h>
#include <google/protobuf/io/coded_stream.h>

#include <algorithm>

#include "base/file.h"
#include "base/text/text.h"

namespace heddle::importer {
namespace {

constexpr int64_t protobuf_bytes = INT32_MAX;
constexpr int nesting = 100;  // of messages; a subgraph takes three levels

// The plain Parse functions print to stderr when they fail; ParsePartial does not, and ONNX has no required fields.
template <class Message>
Result<std::unique_ptr<Message>> read_message(const std::filesystem::path& file, const Limits& limits, const char* what) {
  HEDDLE_TRY(const FileBytes bytes, read_file(file, std::min(limits.file_bytes, protobuf_bytes)));
  if (bytes.size == 0) return Status(Code::file_truncated, fmt::format("{} is empty", quoted(file.string())));
  google::protobuf::io::CodedInputStream coded(reinterpret_cast<const uint8_t*>(bytes.data.get()), static_cast<int>(bytes.size));
  coded.SetRecursionLimit(nesting);
  auto message = std::make_unique<Message>();
  if (!message->ParsePartialFromCodedStream(&coded) || !coded.ConsumedEntireMessage())
    return Status(Code::file_corrupt, fmt::format("{} is not {}, or is cut off", quoted(file.string()), what));
  return message;
}

}  // namespace

Result<std::unique_ptr<::onnx::ModelProto>> read_model(const std::filesystem::path& file, const Limits& limits) {
  return read_message<::onnx::ModelProto>(file, limits, "an ONNX model");
}

Result<std::unique_ptr<::onnx::TensorProto>> read_tensor(const std::filesystem::path& file, const Limits& limits) {
  return read_message<::onnx::TensorProto>(file, limits, "an ONNX tensor");
}

}  // namespace heddle::importer
