#include "net/literal.h"

#include <fmt/format.h>

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "base/half.h"
#include "base/text/text.h"

namespace heddle {
namespace {

// The bits that one floating dtype stores, and the type that its text is converted through without loss.
template <class Stored, class Wide, Stored default_nan, Wide (*widen)(Stored), Stored (*narrow)(Wide)>
struct Floating {
  static void append(std::string& out, const std::byte* data) {
    Stored bits{};
    std::memcpy(&bits, data, sizeof(bits));
    const Wide value = widen(bits);
    if (std::isnan(value) && bits != default_nan) {
      char hex[20];
      out.append("\"nan:").append(hex, std::to_chars(hex, hex + sizeof(hex), bits, 16).ptr).append("\"");
    } else if (std::isnan(value) || std::isinf(value)) {
      out.append("\"").append(shortest(value)).append("\"");
    } else if (value == 0 && std::signbit(value)) {
      out.append("-0.0");  // "-0" would be read as an integer
    } else {
      out.append(shortest(value));
    }
  }
  static std::optional<Stored> parse(JsonValue value) {
    const std::string_view text = value.text();
    if (value.is(JsonValue::Kind::number)) {
      Wide wide{};
      const auto r = std::from_chars(text.data(), text.data() + text.size(), wide);
      if (r.ec != std::errc() || r.ptr != text.data() + text.size()) return std::nullopt;
      const Stored bits = narrow(wide);
      if (std::isinf(widen(bits))) return std::nullopt;  // the number exceeds the range of f16
      return bits;
    }
    if (!value.is(JsonValue::Kind::string)) return std::nullopt;
    if (text == "nan") return default_nan;
    if (text == "inf") return narrow(std::numeric_limits<Wide>::infinity());
    if (text == "-inf") return narrow(-std::numeric_limits<Wide>::infinity());
    if (!text.starts_with("nan:")) return std::nullopt;
    Stored bits{};
    const auto r = std::from_chars(text.data() + 4, text.data() + text.size(), bits, 16);
    if (r.ec != std::errc() || r.ptr != text.data() + text.size() || !std::isnan(widen(bits))) return std::nullopt;
    return bits;
  }
};

float widen_f32(uint32_t bits) {
  return std::bit_cast<float>(bits);
}
uint32_t narrow_f32(float value) {
  return std::bit_cast<uint32_t>(value);
}
double widen_f64(uint64_t bits) {
  return std::bit_cast<double>(bits);
}
uint64_t narrow_f64(double value) {
  return std::bit_cast<uint64_t>(value);
}
using F16 = Floating<uint16_t, float, 0x7E00, float_of_f16, f16_of_float>;
using BF16 = Floating<uint16_t, float, 0x7FC0, float_of_bf16, bf16_of_float>;
using F32 = Floating<uint32_t, float, 0x7FC00000, widen_f32, narrow_f32>;
using F64 = Floating<uint64_t, double, 0x7FF8000000000000, widen_f64, narrow_f64>;

template <class T>
struct Integer {
  static void append(std::string& out, const std::byte* data) {
    T value{};
    std::memcpy(&value, data, sizeof(value));
    out += fmt::to_string(value);
  }
  static std::optional<T> parse(JsonValue value) {
    T result{};
    const std::string_view text = value.text();
    const auto r = std::from_chars(text.data(), text.data() + text.size(), result);
    if (!value.is(JsonValue::Kind::number) || r.ec != std::errc() || r.ptr != text.data() + text.size()) return std::nullopt;
    return result;
  }
};

// Calls `use` with the element codec of a dtype; returns false for dtypes that have none.
template <class Use>
bool with_codec(DType dtype, Use use) {
  switch (dtype) {
    case DType::f16:
      return use(F16{});
    case DType::bf16:
      return use(BF16{});
    case DType::f32:
      return use(F32{});
    case DType::f64:
      return use(F64{});
    case DType::i8:
      return use(Integer<int8_t>{});
    case DType::i16:
      return use(Integer<int16_t>{});
    case DType::i32:
      return use(Integer<int32_t>{});
    case DType::i64:
      return use(Integer<int64_t>{});
    case DType::u8:
    case DType::boolean:
      return use(Integer<uint8_t>{});
    case DType::u16:
      return use(Integer<uint16_t>{});
    case DType::u32:
      return use(Integer<uint32_t>{});
    case DType::u64:
      return use(Integer<uint64_t>{});
    case DType::none:
      break;
  }
  return false;
}

}  // namespace

std::shared_ptr<const Blob> literal_blob(DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  const std::shared_ptr<Blob> blob = Blob::copy_of(DType::u8, Shape{static_cast<int64_t>(bytes.size())}, bytes.data());
  blob->dtype = dtype;
  blob->shape = shape;
  return blob;
}

void append_literal(std::string& out, const Blob& blob) {
  const auto width = static_cast<int64_t>(byte_width(blob.dtype));
  out += '[';
  with_codec(blob.dtype, [&](auto codec) {
    for (int64_t at = 0; at < blob.bytes; at += width) {
      if (at > 0) out += ", ";
      codec.append(out, blob.data + at);
    }
    return true;
  });
  out += ']';
}

void append_number(std::string& out, double value) {
  F64::append(out, reinterpret_cast<const std::byte*>(&value));
}

Result<std::shared_ptr<const Blob>> parse_literal(JsonValue list, DType dtype, const Shape& shape) {
  if (!list.is(JsonValue::Kind::array)) return Status(Code::syntax, "data must be a list of numbers");
  const int64_t width = byte_width(dtype);
  std::vector<std::byte> bytes(static_cast<size_t>(width) * list.size());
  size_t index = 0;
  const bool parsed = with_codec(dtype, [&](auto codec) {
    for (const JsonValue value : list) {
      const auto element = codec.parse(value);
      if (!element) return false;
      std::memcpy(bytes.data() + index * static_cast<size_t>(width), &*element, static_cast<size_t>(width));
      ++index;
    }
    return true;
  });
  if (width == 0) return Status(Code::syntax, "data needs a dtype");
  if (!parsed) return Status(Code::syntax, fmt::format("element {} of data is not a number of dtype {}", index, to_string(dtype)));
  if (static_cast<int64_t>(list.size()) != shape.element_count())
    return Status(Code::shape_mismatch,
                  fmt::format("{} elements are given, {} takes {}", list.size(), shape.text(), shape.element_count()));
  return literal_blob(dtype, shape, bytes);
}

Result<double> parse_number(JsonValue value) {
  const std::optional<uint64_t> bits = F64::parse(value);
  if (!bits) return Status(Code::syntax, "this is not a number");
  return std::bit_cast<double>(*bits);
}

}  // namespace heddle
