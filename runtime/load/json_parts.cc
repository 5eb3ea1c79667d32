#include "load/json_parts.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/reserved_dtypes.h"
#include "base/text/text.h"
#include "net/literal.h"

namespace heddle {
namespace {

using Kind = JsonValue::Kind;

Status read_dim(JsonValue value, Dim* dim) {
  static constexpr std::string_view keys[] = {"at_most"};
  Status status;
  switch (value.kind()) {
    case Kind::null:
      return {};
    case Kind::string:
      *dim = Dim::named(std::string(value.text()));
      return {};
    case Kind::number:
      if (const std::optional<int64_t> extent = value.integer()) {
        *dim = Dim::of(*extent);
        return {};
      }
      break;
    case Kind::object: {
      const JsonFields fields(value, keys);
      HEDDLE_CHECK(fields.status());
      if (!fields.get("at_most")) break;
      *dim = Dim::at_most(fields.integer("at_most", 0, INT64_MAX, 0, &status));
      return status;
    }
    default:
      break;
  }
  return Status(Code::syntax, "a dim is none of: an extent, the name of a symbol, {\"at_most\": extent}, null");
}

// Returns the shape of a type whose dims must all be constant.
Result<Shape> fixed_shape(const DeclaredType& type) {
  Shape shape;
  bool fixed = type.ranked && type.dims.size() <= max_rank;
  for (const Dim& dim : type.dims) {
    fixed = fixed && dim.kind == Dim::Kind::constant && dim.value >= 0;
    shape.push_back(dim.value);
  }
  if (!fixed) return Status(Code::shape_mismatch, fmt::format("data needs at most {} dims, all constant", max_rank));
  return shape;
}

// Checksum and identity are text: many writers of JSON keep only 53 bits of a number.
Status read_weights(JsonValue value, WeightReference* reference) {
  static constexpr std::string_view keys[] = {"file", "tensor", "checksum", "identity"};
  Status status;
  const JsonFields fields(value, keys);
  HEDDLE_CHECK(fields.status());
  reference->file = std::string(fields.text("file", &status));
  reference->tensor = std::string(fields.text("tensor", &status));
  if (fields.get("checksum")) {
    const std::string_view hex = fields.text("checksum", &status);
    if (status.ok() && !parse_hex(hex, &reference->checksum))
      return Status(Code::syntax, fmt::format("the checksum {} is not 16 hexadecimal digits", quoted(hex)));
  }
  if (fields.get("identity")) {
    const std::string_view identity = fields.text("identity", &status);
    if (status.ok() && !WeightsIdentity::parse(identity, &reference->identity))
      return Status(Code::syntax, fmt::format("the identity {} is not 32 hexadecimal digits", quoted(identity)));
  }
  if (status.ok() && (reference->file.empty() || reference->tensor.empty()))
    return Status(Code::syntax, "\"weights\" needs \"file\" and \"tensor\"");
  return status;
}

// A string, or {"hex": "00ff"} for bytes that are not text: JSON is UTF-8 throughout, and attributes may hold any bytes.
Result<std::string> read_bytes(JsonValue value) {
  static constexpr std::string_view keys[] = {"hex"};
  if (value.is(Kind::string)) return std::string(value.text());
  Status status;
  const JsonFields fields(value, keys);
  HEDDLE_CHECK(fields.status());
  const std::string_view hex = fields.text("hex", &status);
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned char byte = 0;
    const auto r = std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    if (r.ec != std::errc() || r.ptr != hex.data() + i + 2) break;
    bytes += static_cast<char>(byte);
  }
  if (!status.ok() || !fields.get("hex") || bytes.size() * 2 != hex.size())
    return Status(Code::syntax, "a string must be text or {\"hex\": an even number of hexadecimal digits}");
  return bytes;
}

Status read_tensor(JsonValue value, AttributeValue* attribute) {
  static constexpr std::string_view keys[] = {"dtype", "dims", "data"};
  Status status;
  const JsonFields fields(value, keys);
  HEDDLE_CHECK(fields.status());
  DeclaredType type;
  HEDDLE_CHECK(read_type(fields, &type));
  HEDDLE_TRY(const Shape shape, fixed_shape(type));
  const std::optional<JsonValue> data = fields.get("data", Kind::array, &status);
  HEDDLE_CHECK(status);
  if (!data) return Status(Code::syntax, "a tensor needs \"data\"");
  HEDDLE_TRY(*attribute, parse_literal(*data, type.dtype, shape));
  return {};
}

Status read_ints(JsonValue value, AttributeValue* attribute) {
  auto& out = attribute->emplace<std::vector<int64_t>>();
  out.reserve(value.size());
  for (const JsonValue element : value) {
    const std::optional<int64_t> i = element.integer();
    if (!i) return Status(Code::syntax, fmt::format("element {} of \"ints\" is not a 64-bit integer", out.size()));
    out.push_back(*i);
  }
  return {};
}

Status read_floats(JsonValue value, AttributeValue* attribute) {
  auto& out = attribute->emplace<std::vector<double>>();
  out.reserve(value.size());
  for (const JsonValue element : value) {
    HEDDLE_TRY(const double number, parse_number(element), fmt::format("as element {} of \"floats\"", out.size()));
    out.push_back(number);
  }
  return {};
}

Status read_strings(JsonValue value, AttributeValue* attribute) {
  auto& out = attribute->emplace<std::vector<std::string>>();
  out.reserve(value.size());
  for (const JsonValue element : value) {
    HEDDLE_TRY(std::string text, read_bytes(element));
    out.push_back(std::move(text));
  }
  return {};
}

}  // namespace

Status read_type(const JsonFields& fields, DeclaredType* type) {
  Status status;
  if (fields.get("dtype")) {
    const std::string name(fields.text("dtype", &status));
    HEDDLE_CHECK(status);
    type->dtype = dtype_from_string(name);
    if (is_reserved_dtype(name))
      return Status(Code::unsupported, fmt::format("the dtype {} is reserved: this version has no operators for it", name),
                    "convert the net to f16, bf16 or i8");
    if (type->dtype == DType::none)
      return Status(Code::syntax, fmt::format("the dtype {} does not exist", quoted(name)),
                    "known are f16, bf16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64, bool");
  }
  const std::optional<JsonValue> dims = fields.get("dims", Kind::array, &status);
  HEDDLE_CHECK(status);
  type->ranked = dims.has_value();
  if (!dims) return {};  // without dims even the rank is unknown; with [] it is a scalar
  for (const JsonValue value : *dims) HEDDLE_CHECK(read_dim(value, &type->dims.emplace_back()));
  return {};
}

Status read_content(const JsonFields& fields, const DeclaredType& type, Content* content) {
  const std::optional<JsonValue> data = fields.get("data");
  const std::optional<JsonValue> weights = fields.get("weights");
  if (data && weights) return Status(Code::syntax, "\"data\" and \"weights\" exclude each other", "give one of them");
  if (weights) return read_weights(*weights, &content->reference.edit());
  if (!data) return {};
  // The shape comes from the dims alone: data of another count is an error, never a guess.
  HEDDLE_TRY(const Shape shape, fixed_shape(type));
  HEDDLE_TRY(content->blob, parse_literal(*data, type.dtype, shape));
  return {};
}

Status read_attribute(JsonValue value, AttributeValue* attribute, std::optional<JsonValue>* subnet) {
  static constexpr std::string_view keys[] = {"int", "float", "string", "ints", "floats", "strings", "tensor", "net"};
  const JsonFields fields(value, keys);
  HEDDLE_CHECK(fields.status());
  if (value.size() != 1)
    return Status(Code::syntax, "an attribute needs exactly one of int, float, string, ints, floats, strings, tensor, net");
  Status status;
  if (const std::optional<JsonValue> v = fields.get("int")) {
    const std::optional<int64_t> i = v->integer();
    if (!i) return Status(Code::syntax, "\"int\" is not a 64-bit integer");
    *attribute = *i;
  } else if (const std::optional<JsonValue> v = fields.get("float")) {
    HEDDLE_TRY(*attribute, parse_number(*v), "as \"float\"");
  } else if (const std::optional<JsonValue> v = fields.get("string")) {
    HEDDLE_TRY(*attribute, read_bytes(*v));
  } else if (const std::optional<JsonValue> v = fields.get("ints", Kind::array, &status)) {
    return read_ints(*v, attribute);
  } else if (const std::optional<JsonValue> v = fields.get("floats", Kind::array, &status)) {
    return read_floats(*v, attribute);
  } else if (const std::optional<JsonValue> v = fields.get("strings", Kind::array, &status)) {
    return read_strings(*v, attribute);
  } else if (const std::optional<JsonValue> v = fields.get("tensor")) {
    return read_tensor(*v, attribute);
  } else if (status.ok()) {
    // Returned unread: the reader of nets counts depth and operators over all of them.
    *subnet = fields.get("net");
  }
  return status;
}

}  // namespace heddle
