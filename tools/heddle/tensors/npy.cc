#include "tensors/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/file.h"
#include "base/text/limit_names.h"
#include "base/text/text.h"
#include "common/standard_streams.h"

namespace heddle::tool {
namespace {

struct Format {
  const char* kind;  // NumPy's name, without the byte order
  DType dtype;
};
constexpr Format formats[] = {{"f2", DType::f16}, {"f4", DType::f32}, {"f8", DType::f64}, {"i1", DType::i8},
                              {"i2", DType::i16}, {"i4", DType::i32}, {"i8", DType::i64}, {"u1", DType::u8},
                              {"u2", DType::u16}, {"u4", DType::u32}, {"u8", DType::u64}, {"b1", DType::boolean}};

// The dtype of "'<f4'", and whether its byte order differs from that of this machine; none: it is of another kind.
DType read_descr(const std::string& descr, bool* swapped) {
  if (descr.size() != 5 || descr.front() != '\'' || descr.back() != '\'') return DType::none;
  const char order = descr[1];
  if (std::strchr("<>=|", order) == nullptr) return DType::none;
  for (const Format& f : formats)
    if (descr.compare(2, 2, f.kind) == 0) return *swapped = order == '>' && byte_width(f.dtype) > 1, f.dtype;
  return DType::none;
}

// Reverses the bytes of each of `elements` elements of `width` bytes.
void swap_bytes(std::byte* data, int64_t elements, int64_t width) {
  for (int64_t i = 0; i < elements; ++i) std::reverse(data + i * width, data + (i + 1) * width);
}

// Converts from the order in which the first index runs fastest to that in which the last does.
void copy_from_fortran_order(const std::byte* from, const Shape& shape, int64_t width, std::byte* to) {
  std::vector<int64_t> strides;  // of `from`, in elements
  int64_t stride = 1;
  for (const int64_t dim : shape) {
    strides.push_back(stride);
    stride *= dim;
  }
  std::vector<int64_t> at(strides.size(), 0);
  int64_t place = 0;
  for (int64_t i = 0, count = shape.element_count(); i < count; ++i) {
    std::memcpy(to + i * width, from + place * width, static_cast<size_t>(width));
    for (int d = shape.rank() - 1; d >= 0; --d) {
      const auto k = static_cast<size_t>(d);
      place += strides[k];
      if (++at[k] < shape[d]) break;
      place -= strides[k] * at[k];
      at[k] = 0;
    }
  }
}

// Returns the text after "'key':" in the header's Python literal, up to the next comma at depth 0.
std::string field(const std::string& header, const std::string& key) {
  const size_t at = header.find(fmt::format("'{}'", key));
  if (at == std::string::npos) return {};
  size_t i = header.find(':', at);
  if (i == std::string::npos) return {};
  int depth = 0;
  std::string out;
  for (++i; i < header.size(); ++i) {
    const char c = header[i];
    if (c == '(') ++depth;
    if ((c == ',' && depth == 0) || c == '}') break;
    if (c != ' ') out += c;
    if (c == ')' && --depth == 0) break;
  }
  return out;
}

Status parse_extents(const std::string& text, Shape* shape) {
  if (text.size() < 2 || text.front() != '(') return {Code::syntax, "the header has no shape"};
  size_t i = 1;
  while (i < text.size() && text[i] != ')') {
    size_t end = text.find_first_of(",)", i);
    if (end == std::string::npos) return {Code::syntax, "the header's shape does not end"};
    int64_t dim = 0;
    if (!parse_int(std::string_view(text).substr(i, end - i), &dim) || dim < 0) return {Code::syntax, "the header's shape is wrong"};
    if (shape->rank() == max_rank) return {Code::limit_exceeded, fmt::format("the array has more than {} dimensions", max_rank)};
    shape->push_back(dim);
    i = text[end] == ',' ? end + 1 : end;
  }
  return {};
}

}  // namespace

Result<std::shared_ptr<const Blob>> read_npy(const std::string& file, const Limits& limits) {
  const std::string during = fmt::format("while reading {}", quoted(file));
  HEDDLE_TRY(const FileBytes bytes, read_file(file, limits.weight_file_bytes, "weight_file_bytes"));
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data.get());
  if (bytes.size < 10 || std::memcmp(data, "\x93NUMPY", 6) != 0)
    return Status(Code::syntax, fmt::format("{} is not an .npy file", quoted(file)), "save it with numpy.save");
  const bool wide = data[6] >= 2;
  const size_t start = wide ? 12 : 10;
  if (bytes.size < start) return Status(Code::file_truncated, fmt::format("{} ends in its header", quoted(file)));
  size_t length = data[8] | static_cast<size_t>(data[9]) << 8;
  if (wide) length |= static_cast<size_t>(data[10]) << 16 | static_cast<size_t>(data[11]) << 24;
  if (length > bytes.size - start) return Status(Code::file_truncated, fmt::format("{} ends in its header", quoted(file)));
  const std::string header(reinterpret_cast<const char*>(data + start), length);
  const std::string descr = field(header, "descr");
  bool swapped = false;
  const DType dtype = read_descr(descr, &swapped);
  if (dtype == DType::none)
    return Status(Code::unsupported, fmt::format("{} has element type {}", quoted(file), quoted(descr)),
                  "convert it to numbers or bool of a fixed width");
  const std::string order = field(header, "fortran_order");
  if (order != "False" && order != "True") return Status(Code::syntax, "the header does not say the order of axes").during(during);
  Shape shape;
  HEDDLE_CHECK(parse_extents(field(header, "shape"), &shape), during);
  int64_t size = 0;
  if (!checked_byte_size(dtype, shape, &size))
    return Status(Code::limit_exceeded, fmt::format("{} has shape {}, more bytes than memory has addresses", quoted(file), shape.text()));
  if (static_cast<size_t>(size) != bytes.size - start - length)
    return Status(Code::file_truncated, fmt::format("{} has {} bytes of data, its shape {} needs {}", quoted(file),
                                                    bytes.size - start - length, shape.text(), size));
  const auto* const content = reinterpret_cast<const std::byte*>(data + start + length);
  if (order == "False" && !swapped) return std::shared_ptr<const Blob>(Blob::copy_of(dtype, shape, content));
  std::byte* made = nullptr;
  auto blob = Blob::allocate(dtype, shape, &made);
  if (order == "True")
    copy_from_fortran_order(content, shape, byte_width(dtype), made);
  else
    std::memcpy(made, content, static_cast<size_t>(size));
  if (swapped) swap_bytes(made, shape.element_count(), byte_width(dtype));
  return std::shared_ptr<const Blob>(std::move(blob));
}

Status write_npy(const std::string& file, const TensorView& tensor) {
  std::string descr;
  for (const Format& f : formats)
    if (f.dtype == tensor.dtype) descr = (byte_width(f.dtype) == 1 ? "|" : "<") + std::string(f.kind);
  if (tensor.dtype == DType::bf16) descr = "<u2";
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (", descr);
  for (const int64_t dim : tensor.shape) header += fmt::format("{},", dim);
  header += "), }";
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string prefix("\x93NUMPY\x01\x00", 8);
  prefix += static_cast<char>(header.size() & 255);
  prefix += static_cast<char>(header.size() >> 8);
  const std::span<const std::byte> content(static_cast<const std::byte*>(tensor.data), static_cast<size_t>(tensor.byte_size()));
  prefix += header;
  return write_output(file, {std::as_bytes(std::span(prefix)), content});
}

}  // namespace heddle::tool
