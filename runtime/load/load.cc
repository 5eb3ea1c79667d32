#include "load/load.h"

#include <fmt/format.h>

#include <cstring>
#include <new>

#include "base/file.h"
#include "base/text/text.h"
#include "load/flatbuffer.h"
#include "load/header.h"
#include "load/json.h"
#include "load/structure.h"
#include "weights/attach.h"

namespace heddle {
namespace {

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// JSON begins with "{" after white space and perhaps a byte order mark.
bool looks_like_json(std::span<const std::byte> bytes) {
  std::string_view text = as_text(bytes);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] == '{';
}

Result<std::vector<Net>> parse_nets(std::span<const std::byte> bytes, const Limits& limits) {
  if (bytes.empty()) return Status(Code::file_truncated, "the file is empty", "fetch it again");
  if (static_cast<int64_t>(bytes.size()) > limits.file_bytes)
    return over_limit(limits, &Limits::file_bytes, fmt::format("the net has {}", human_bytes(static_cast<int64_t>(bytes.size()))));
  if (!has_net_magic(bytes)) {
    if (looks_like_json(bytes)) return nets_from_json(as_text(bytes), limits);
    return Status(Code::file_corrupt,
                  fmt::format("this is neither a Heddle net nor JSON: it begins with {}", quoted(as_text(bytes).substr(0, 8))),
                  "ONNX models are read by `heddle import`");
  }
  HEDDLE_TRY(const std::span<const std::byte> payload, checked_payload(bytes));
  if (reinterpret_cast<uintptr_t>(payload.data()) % 64 == 0) return nets_from_flatbuffer(payload, limits);
  // The caller's bytes may have any alignment; a flatbuffer must be aligned.
  FileBytes aligned = FileBytes::allocate(payload.size());
  if (!payload.empty()) std::memcpy(aligned.data.get(), payload.data(), payload.size());
  return nets_from_flatbuffer(aligned.span(), limits);
}

Result<std::vector<Net>> load_checked(std::span<const std::byte> bytes, const std::filesystem::path& folder, const LoadOptions& options) {
  HEDDLE_TRY(std::vector<Net> nets, parse_nets(bytes, options.limits));
  for (Net& net : nets)
    if (options.attach_weights) HEDDLE_CHECK(attach_weights(net, folder, {options.limits, options.verify_checksums, options.map_weights}));
  return nets;
}

}  // namespace

Result<std::vector<Net>> load_nets_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder,
                                         const LoadOptions& options) {
  try {
    return load_checked(bytes, folder, options);
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, fmt::format("no memory for a net of {}", human_bytes(static_cast<int64_t>(bytes.size()))));
  }
}

Result<Net> load_net_bytes(std::span<const std::byte> bytes, const std::filesystem::path& folder, const LoadOptions& options) {
  HEDDLE_TRY(std::vector<Net> nets, load_nets_bytes(bytes, folder, options));
  return only_net(std::move(nets));
}

Result<std::vector<Net>> load_nets(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string what = fmt::format("while loading {}", quoted(path.native()));
  try {
    HEDDLE_TRY(const FileBytes file, read_file(path, options.limits.file_bytes));
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    HEDDLE_TRY(std::vector<Net> nets, load_checked(file.span(), folder, options), what);
    return nets;
  } catch (const std::bad_alloc&) {
    return Status(Code::out_of_memory, fmt::format("no memory to load {}", quoted(path.native())));
  }
}

Result<Net> load_net(const std::filesystem::path& path, const LoadOptions& options) {
  HEDDLE_TRY(std::vector<Net> nets, load_nets(path, options));
  HEDDLE_TRY(Net net, only_net(std::move(nets)), fmt::format("while loading {}", quoted(path.native())));
  return net;
}

}  // namespace heddle
