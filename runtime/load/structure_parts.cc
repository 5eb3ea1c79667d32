#include "load/structure_parts.h"

#include <algorithm>

#include "base/checked.h"
#include "base/text.h"

namespace heddle {
namespace {

bool valid_dtype(DType dtype) {
  const auto i = static_cast<int>(dtype);
  return i >= 0 && i < HEDDLE_DTYPE_COUNT;
}

bool plain_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<signed char>(c) > 0; });
}

Status check_dim(const Dim& dim, const Limits& limits) {
  switch (dim.kind) {
    case Dim::Kind::constant:
    case Dim::Kind::bounded:
      if (dim.value < 0) return Status(Code::file_corrupt, "a declared dim is " + std::to_string(dim.value), "dims are 0 or more");
      return {};
    case Dim::Kind::symbol:
      return check_name(dim.symbol, "a symbolic dim", limits);
    case Dim::Kind::dynamic:
      return {};
  }
  return Status(Code::file_corrupt, "a declared dim has the kind " + std::to_string(static_cast<int>(dim.kind)) + ", which does not exist");
}

}  // namespace

Status check_text(std::string_view text, const char* what, const Limits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.name_bytes)
    return over_limit(limits, &Limits::name_bytes,
                      std::string(what) + " that begins " + quoted(text.substr(0, 32)) + " has " + std::to_string(text.size()) + " bytes");
  if (plain_ascii(text)) return {};
  if (text.find('\0') != std::string_view::npos) return Status(Code::syntax, std::string(what) + " " + quoted(text) + " has a zero byte");
  if (!is_utf8(text)) return Status(Code::syntax, std::string(what) + " " + quoted(text) + " is not UTF-8");
  return {};
}

Status check_name(std::string_view name, const char* what, const Limits& limits) {
  if (name.empty()) return Status(Code::syntax, std::string(what) + " has no name", "give it one");
  return check_text(name, what, limits);
}

Status check_type(const DeclaredType& type, const Limits& limits) {
  if (!valid_dtype(type.dtype))
    return Status(Code::file_corrupt, "the dtype " + std::to_string(static_cast<int>(type.dtype)) + " does not exist");
  if (!type.ranked && !type.dims.empty()) return Status(Code::file_corrupt, "the type has dims but says that its rank is not known");
  if (type.dims.size() > max_rank)
    return Status(Code::unsupported,
                  "it has " + std::to_string(type.dims.size()) + " dimensions, Heddle does at most " + std::to_string(max_rank),
                  "merge some of them");
  int64_t bytes = std::max<int64_t>(byte_width(type.dtype), 1);
  for (const Dim& dim : type.dims) {
    HEDDLE_CHECK(check_dim(dim, limits));
    const bool counts = dim.kind == Dim::Kind::constant || dim.kind == Dim::Kind::bounded;
    // Empty dims count as 1, so that the strides of the other dims fit too.
    if (counts && !checked_multiply(bytes, std::max<int64_t>(dim.value, 1), &bytes)) bytes = INT64_MAX;
    if (bytes > limits.tensor_bytes)
      return over_limit(limits, &Limits::tensor_bytes,
                        bytes == INT64_MAX ? "its dims ask for more than 2^63 bytes" : "its dims ask for " + human_bytes(bytes));
  }
  return {};
}

Status check_blob(const Blob& blob, const Limits& limits) {
  HEDDLE_CHECK(check_type(DeclaredType::of(blob.dtype, blob.shape), limits));
  int64_t expected = 0;
  if (blob.dtype == DType::none || !checked_byte_size(blob.dtype, blob.shape, &expected))
    return Status(Code::shape_mismatch,
                  std::string("a tensor of type ") + to_string(blob.dtype) + " " + blob.shape.text() + " can't exist");
  if (expected != blob.bytes)
    return Status(Code::shape_mismatch, std::string(to_string(blob.dtype)) + " " + blob.shape.text() + " takes " +
                                            std::to_string(expected) + " bytes, there are " + std::to_string(blob.bytes));
  if (expected > 0 && blob.data == nullptr) return Status(Code::weights_missing, "its bytes are nowhere", "give them");
  if (blob.dtype == DType::boolean && std::any_of(blob.data, blob.data + blob.bytes, [](std::byte b) { return b > std::byte{1}; }))
    return Status(Code::file_corrupt, "a bool is neither 0 nor 1");
  return {};
}

Status check_content(const Content& content, const DeclaredType& type, const Limits& limits) {
  HEDDLE_CHECK(check_type(type, limits));
  const bool fixed = type.ranked && type.dtype != DType::none &&
                     std::all_of(type.dims.begin(), type.dims.end(), [](const Dim& d) { return d.kind == Dim::Kind::constant; });
  if (!fixed) return Status(Code::shape_mismatch, "a constant or variable needs a dtype and constant dims");
  const WeightReference& reference = content.reference;
  if (reference.file.empty() != reference.tensor.empty())
    return Status(Code::file_corrupt, "a reference to a weights file needs both the file and the tensor");
  HEDDLE_CHECK(check_text(reference.file, "a weights file", limits));
  HEDDLE_CHECK(check_text(reference.tensor, "a tensor of a weights file", limits));
  if (content.blob == nullptr)
    return reference.file.empty() ? Status(Code::weights_missing, "it has no content", "give its data or the weights file") : Status();
  HEDDLE_CHECK(check_blob(*content.blob, limits));
  if (DeclaredType::of(content.blob->dtype, content.blob->shape) != type)
    return Status(Code::shape_mismatch, std::string("its content is ") + to_string(content.blob->dtype) + " " + content.blob->shape.text() +
                                            ", which is not its declared type");
  return {};
}

Status check_attribute(const Attribute& attribute, const Limits& limits) {
  HEDDLE_CHECK(check_name(attribute.name, "an attribute", limits));
  const auto list = [&](size_t n) {
    if (static_cast<int64_t>(n) <= limits.attribute_elements) return Status();
    return over_limit(limits, &Limits::attribute_elements,
                      "attribute " + quoted(attribute.name) + " has " + std::to_string(n) + " elements");
  };
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) return list(ints->size());
  if (const auto* reals = std::get_if<std::vector<double>>(&attribute.value)) return list(reals->size());
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) return list(texts->size());
  if (const auto* tensor = std::get_if<std::shared_ptr<const Blob>>(&attribute.value)) {
    if (*tensor == nullptr) return Status(Code::attribute_mismatch, "attribute " + quoted(attribute.name) + " has no tensor");
    Status status = check_blob(**tensor, limits);
    if (!status.ok()) status.diagnostic().message = "attribute " + quoted(attribute.name) + ": " + status.diagnostic().message;
    return status;
  }
  const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
  if (subnet != nullptr && *subnet == nullptr)
    return Status(Code::attribute_mismatch, "attribute " + quoted(attribute.name) + " has no net");
  return {};
}

}  // namespace heddle
