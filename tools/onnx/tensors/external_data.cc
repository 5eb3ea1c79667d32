#include "onnx/tensors/external_data.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/checked.h"
#include "base/text/text.h"
#include "weights/mapping.h"

namespace heddle::importer {
namespace {

struct Location {
  std::string file;
  int64_t offset = 0;
  int64_t length = -1;  // -1: not given
};

Result<Location> location_of(const ::onnx::TensorProto& tensor) {
  Location location;
  for (const auto& entry : tensor.external_data()) {
    int64_t* number = entry.key() == "offset" ? &location.offset : entry.key() == "length" ? &location.length : nullptr;
    if (entry.key() == "location") location.file = entry.value();
    if (number && (!parse_int(entry.value(), number) || *number < 0))
      return Status(Code::file_corrupt,
                    fmt::format("external data of tensor {} has {} {}", quoted(tensor.name()), quoted(entry.key()), quoted(entry.value())));
  }
  if (location.file.empty())
    return Status(Code::file_corrupt, fmt::format("external data of tensor {} names no file", quoted(tensor.name())));
  return location;
}

Status read_fully(int fd, int64_t offset, std::byte* bytes, int64_t size, const std::string& file) {
  while (size > 0) {
    const ssize_t n = ::pread(fd, bytes, static_cast<size_t>(std::min<int64_t>(size, 1 << 30)), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return {Code::weights_mismatch, fmt::format("external data {} ended while it was read", quoted(file))};
    bytes += n;
    offset += n;
    size -= n;
  }
  return {};
}

Status check_extent(const Location& location, int64_t wanted, int64_t file_bytes) {
  int64_t end = 0;
  if (location.length >= 0 && location.length != wanted)
    return {Code::weights_mismatch,
            fmt::format("external data {} gives {} bytes where the dims ask for {}", quoted(location.file), location.length, wanted)};
  if (!checked_add(location.offset, wanted, &end) || end > file_bytes)
    return {Code::weights_mismatch, fmt::format("external data {} has {} bytes, but {} at offset {} are asked for", quoted(location.file),
                                                file_bytes, wanted, location.offset)};
  return {};
}

}  // namespace

Result<std::shared_ptr<Blob>> read_external_data(const ::onnx::TensorProto& tensor, DType dtype, const Shape& shape,
                                                 ExternalData& external) {
  HEDDLE_TRY(const Location location, location_of(tensor));
  const std::filesystem::path root = external.folder.empty() ? std::filesystem::path(".") : external.folder;
  HEDDLE_TRY(const FileDescriptor file, open_beneath(root, location.file), fmt::format("for tensor {}", quoted(tensor.name())));
  struct stat info = {};
  if (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode))
    return Status(Code::weights_outside, fmt::format("external data {} is not a regular file", quoted(location.file)));
  int64_t bytes = 0;
  if (!checked_byte_size(dtype, shape, &bytes))
    return Status(Code::limit_exceeded, fmt::format("tensor {} of shape {} is too large", quoted(tensor.name()), shape.text()));
  HEDDLE_CHECK(check_extent(location, bytes, info.st_size));
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  HEDDLE_CHECK(read_fully(file.get(), location.offset, data, bytes, location.file));
  external.read.insert(root / location.file);
  if (dtype == DType::boolean)
    for (int64_t i = 0; i < bytes; ++i) data[i] = std::byte{data[i] != std::byte{0}};
  return blob;
}

}  // namespace heddle::importer
