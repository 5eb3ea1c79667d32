#include "load/structure_parts.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/reserved_dtypes.h"
#include "base/text/text.h"
#include "net/initializer.h"

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
      if (dim.value < 0) return Status(Code::file_corrupt, fmt::format("a declared dim is {}", dim.value), "dims are 0 or more");
      return {};
    case Dim::Kind::symbol:
      return check_name(dim.symbol, "a symbolic dim", limits);
    case Dim::Kind::dynamic:
      return {};
  }
  return Status(Code::file_corrupt, fmt::format("a declared dim has the kind {}, which does not exist", static_cast<int>(dim.kind)));
}

}  // namespace

Status check_text(std::string_view text, const char* what, const Limits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.name_bytes)
    return over_limit(limits, &Limits::name_bytes,
                      fmt::format("{} that begins {} has {} bytes", what, quoted(text.substr(0, 32)), text.size()));
  if (plain_ascii(text)) return {};
  if (text.find('\0') != std::string_view::npos) return Status(Code::syntax, fmt::format("{} {} has a zero byte", what, quoted(text)));
  if (!is_utf8(text)) return Status(Code::syntax, fmt::format("{} {} is not UTF-8", what, quoted(text)));
  return {};
}

Status check_name(std::string_view name, const char* what, const Limits& limits) {
  if (name.empty()) return Status(Code::syntax, fmt::format("{} has no name", what), "give it one");
  return check_text(name, what, limits);
}

Status check_type(const DeclaredType& type, const Limits& limits) {
  if (const std::string_view reserved = reserved_dtype(static_cast<int>(type.dtype)); !reserved.empty())
    return Status(Code::unsupported, fmt::format("the dtype {} is reserved: this version has no operators for it", reserved),
                  "convert the net to f16, bf16 or i8");
  if (!valid_dtype(type.dtype)) return Status(Code::file_corrupt, fmt::format("the dtype {} does not exist", static_cast<int>(type.dtype)));
  if (!type.ranked && !type.dims.empty()) return Status(Code::file_corrupt, "the type has dims but says that its rank is not known");
  if (type.dims.size() > max_rank)
    return Status(Code::unsupported, fmt::format("it has {} dimensions, Heddle does at most {}", type.dims.size(), max_rank),
                  "merge some of them");
  int64_t bytes = std::max<int64_t>(byte_width(type.dtype), 1);
  for (const Dim& dim : type.dims) {
    HEDDLE_CHECK(check_dim(dim, limits));
    const bool counts = dim.kind == Dim::Kind::constant || dim.kind == Dim::Kind::bounded;
    // Empty dims count as 1, so that the strides of the other dims fit too.
    if (counts && !checked_multiply(bytes, std::max<int64_t>(dim.value, 1), &bytes)) bytes = INT64_MAX;
    if (bytes > limits.tensor_bytes)
      return over_limit(
          limits, &Limits::tensor_bytes,
          bytes == INT64_MAX ? "its dims ask for more than 2^63 bytes" : fmt::format("its dims ask for {}", human_bytes(bytes)));
  }
  return {};
}

Status check_blob(const Blob& blob, const Limits& limits) {
  HEDDLE_CHECK(check_type(DeclaredType::of(blob.dtype, blob.shape), limits));
  int64_t expected = 0;
  if (blob.dtype == DType::none || !checked_byte_size(blob.dtype, blob.shape, &expected))
    return Status(Code::shape_mismatch, fmt::format("a tensor of type {} {} can't exist", to_string(blob.dtype), blob.shape.text()));
  if (expected != blob.bytes)
    return Status(Code::shape_mismatch,
                  fmt::format("{} {} takes {} bytes, there are {}", to_string(blob.dtype), blob.shape.text(), expected, blob.bytes));
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
  const WeightReference& reference = *content.reference;
  if (reference.file.empty() != reference.tensor.empty())
    return Status(Code::file_corrupt, "a reference to a weights file needs both the file and the tensor");
  HEDDLE_CHECK(check_text(reference.file, "a weights file", limits));
  HEDDLE_CHECK(check_text(reference.tensor, "a tensor of a weights file", limits));
  if (content.blob == nullptr)
    return reference.file.empty() ? Status(Code::weights_missing, "it has no content", "give its data or the weights file") : Status();
  HEDDLE_CHECK(check_blob(*content.blob, limits));
  if (DeclaredType::of(content.blob->dtype, content.blob->shape) != type)
    return Status(Code::shape_mismatch, fmt::format("its content is {} {}, which is not its declared type", to_string(content.blob->dtype),
                                                    content.blob->shape.text()));
  return {};
}

Status check_variable(const Variable& variable, const Limits& limits) {
  if (!variable.replica_of.empty()) {
    HEDDLE_CHECK(check_text(variable.replica_of, "a variable", limits));
    if (!variable.initial.any() && variable.initializer.empty()) return check_type(variable.type, limits);
    return {Code::invalid_argument, fmt::format("it is a replica of {}, and has content of its own", quoted(variable.replica_of)),
            "leave that out: it begins with that of the other"};
  }
  if (variable.initializer.empty()) return check_content(variable.initial, variable.type, limits);
  HEDDLE_CHECK(check_text(variable.initializer, "an initializer", limits));
  HEDDLE_TRY(const Initializer rule, Initializer::parse(variable.initializer));
  if (variable.initial.any()) HEDDLE_CHECK(check_content(variable.initial, variable.type, limits));
  HEDDLE_CHECK(check_type(variable.type, limits));
  const std::optional<Shape> shape = variable.type.fixed_shape();
  if (!shape || variable.type.dtype == DType::none) return {Code::shape_mismatch, "a variable needs a dtype and constant dims"};
  return rule.check(variable.type.dtype, *shape);
}

Status check_attribute(const Attribute& attribute, const Limits& limits) {
  HEDDLE_CHECK(check_name(attribute.name, "an attribute", limits));
  const auto list = [&](size_t n) {
    if (static_cast<int64_t>(n) <= limits.attribute_elements) return Status();
    return over_limit(limits, &Limits::attribute_elements, fmt::format("attribute {} has {} elements", quoted(attribute.name), n));
  };
  if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute.value)) return list(ints->size());
  if (const auto* reals = std::get_if<std::vector<double>>(&attribute.value)) return list(reals->size());
  if (const auto* texts = std::get_if<std::vector<std::string>>(&attribute.value)) return list(texts->size());
  if (const auto* tensor = std::get_if<std::shared_ptr<const Blob>>(&attribute.value)) {
    if (*tensor == nullptr) return Status(Code::attribute_mismatch, fmt::format("attribute {} has no tensor", quoted(attribute.name)));
    Status status = check_blob(**tensor, limits);
    if (!status.ok()) status.diagnostic().message = fmt::format("attribute {}: {}", quoted(attribute.name), status.diagnostic().message);
    return status;
  }
  const auto* subnet = std::get_if<std::shared_ptr<const Net>>(&attribute.value);
  if (subnet != nullptr && *subnet == nullptr)
    return Status(Code::attribute_mismatch, fmt::format("attribute {} has no net", quoted(attribute.name)));
  return {};
}

}  // namespace heddle
