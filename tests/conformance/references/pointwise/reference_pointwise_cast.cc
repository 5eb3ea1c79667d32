// Cast and CastLike: every pair of dtypes.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <sstream>

#include "conformance/cases/pointwise_cases.h"
#include "conformance/reference.h"

namespace heddle::conformance {
namespace reference_pointwise_cast {
namespace {

struct Named {
  DType dtype;
  const char* name;
  int onnx;           // TensorProto.DataType
  const char* range;  // random numbers for a cast from it, whose fraction is dropped
};
constexpr Named dtypes[] = {{DType::f16, "f16", 10, "0..99"},
                            {DType::bf16, "bf16", 16, "0..99"},
                            {DType::f32, "f32", 1, "0..99"},
                            {DType::f64, "f64", 11, "0..99"},
                            {DType::i8, "i8", 3, "-128..128"},
                            {DType::i16, "i16", 5, "-32768..32768"},
                            {DType::i32, "i32", 6, "-2147483648..2147483648"},
                            {DType::i64, "i64", 7, "-9e18..9e18"},
                            {DType::u8, "u8", 2, "0..256"},
                            {DType::u16, "u16", 4, "0..65536"},
                            {DType::u32, "u32", 12, "0..4294967296"},
                            {DType::u64, "u64", 13, "0..9e18"},
                            {DType::boolean, "bool", 9, "0..2"}};

bool is_unsigned(DType dtype) {
  return dtype == DType::u8 || dtype == DType::u16 || dtype == DType::u32 || dtype == DType::u64;
}

// Returns floats that reveal mistakes in a cast between floats: ties to even and their neighbours, the ends of each dtype's range,
// denormals. For f64, one place after a tie of f16 or bf16 is beyond the precision of f32.
std::string telling_floats(const Named& from) {
  std::string list = "nan inf -inf 0 -0 1 -1 0.1 -3.25 65504 1e-7 6e-8 -6e-5";
  if (from.dtype == DType::f16) return list;
  list += " 65520 65519 -65536 1e-9 3e38 -3e38 1e-38 1e-40";  // about the largest f16, and below its minimum
  if (from.dtype == DType::bf16) return list;
  list += " 1.00048828125 1.00146484375 -1.00048828125";  // 1 + 2^-11: ties of f16
  list += " 1.00390625 1.01171875 -1.01171875";           // 1 + 2^-8: ties of bf16
  list += " 1.000488400459 1.00048816204 1.00390636920929 2.98e-8 8.94e-8 3.39e38 3.3895314e38 3.3961775e38";
  if (from.dtype == DType::f32) return list;
  list += " 1.000488281250001 1.000488281249999 1.003906250000001 1.003906249999999 1.011718750000001";
  list += " 1.000000059604644775 1.000000178813934326 1.0000000596046450 1e300 -1e300 1e-300 3.4028235677973366e38 3.4028235e38";
  return list;
}

// Returns floats within the integer's range, with fractions that are dropped, up to where the floats have none.
std::string within(const Named& from, const Named& to) {
  std::string list = "0 -0 0.5 0.75 1 1.25 1.5 1.75 2.5 99.5 126.5 127";
  if (!is_unsigned(to.dtype)) list += " -0.5 -0.75 -1 -1.5 -1.75 -2.5 -99.5 -127 -128";
  if (is_unsigned(to.dtype)) list += " 128 200.5 254 255";
  const int width = byte_width(to.dtype);
  if (width >= 2) list += is_unsigned(to.dtype) ? " 256 32768 65024" : " 256 1000 32640 -32640";
  if (width >= 4 && from.dtype != DType::f16) list += is_unsigned(to.dtype) ? " 65536 2147483648 4278190080" : " 2130706432 -2147483648";
  if (width >= 4 && (from.dtype == DType::f32 || from.dtype == DType::f64)) list += " 8388607.5 16777215";
  if (width >= 4 && from.dtype == DType::f64) list += is_unsigned(to.dtype) ? " 4294967295 4294967294.75" : " 2147483647 2147483646.75";
  if (width >= 8 && from.dtype != DType::f16) list += is_unsigned(to.dtype) ? " 9223372036854775808 1.8e19" : " 9e18 -9223372036854775808";
  if (width >= 8 && from.dtype == DType::f64) list += " 9007199254740991 4503599627370495.5";
  return list;
}

// Returns integers next to ties of the floats with less bits, and the ends of the range; some of them are on a tie only when rounded once
// before.
std::string telling_integers(const Named& from) {
  const bool below = !is_unsigned(from.dtype);
  std::string list = below ? "0 1 -1 127 -128" : "0 1 2 127 255";
  const int width = byte_width(from.dtype);
  if (width >= 2) list += " 257 258 259 2049 2051 32767";
  if (width >= 2) list += below ? " -32768 -2049 -257" : " 65535 65519 65520";
  if (width >= 4) list += " 65519 65520 16777217 16777219 16842753 2147483647 2105344 2105345 16846848 16846849";
  if (width >= 4) list += below ? " -2147483648 -16777217" : " 4294967295 2147483648";
  if (width >= 8) list += " 9007199254740993 9007199254740995 36028797018963969 36028799166447617 36028799166447616 144115188075855873";
  if (width >= 8) list += " 36169534507319297 36169534507319296 9223372036854775807";
  if (width >= 8)
    list += below ? " -9223372036854775808 -9007199254740993" : " 18446744073709551615 9223372036854775809 9223373136366403585";
  return list;
}

Names words_of(const std::string& list) {
  std::istringstream stream(list);
  return {std::istream_iterator<std::string>(stream), std::istream_iterator<std::string>()};
}

std::string telling(const Named& from, const Named& to) {
  if (from.dtype == DType::boolean) return "0 1 1 0 1";
  if (!is_floating(from.dtype)) return telling_integers(from);
  return is_floating(to.dtype) || to.dtype == DType::boolean ? telling_floats(from) : within(from, to);
}

// Returns true for pairs that get a case of several tiles, which takes too many elements to give every pair one: one pair for each width
// beside each other, and those with code of their own.
bool several_tiles(const Named& from, const Named& to) {
  const std::string pair = std::string(from.name) + ' ' + to.name;
  for (const char* one :
       {"f64 i8", "i8 f64", "f64 f32", "f64 f16", "f32 f16", "f16 f32", "bf16 i32", "i64 bf16", "u16 u32", "bool f64", "f32 bool"})
    if (pair == one) return true;
  return false;
}

// `end` is the rest of the call after its first input.
void add_pair(Cases& cases, const Named& from, const Named& to, const std::string& end) {
  const std::string name = from.name, list = telling(from, to),
                    range = is_floating(from.dtype) && !is_unsigned(to.dtype) ? "-99..99" : from.range;
  const Names words = words_of(list);
  cases.push_back({Kind::odd, name + "[" + std::to_string(words.size()) + "] = " + list + end});
  // Fewer elements than a vector holds may be converted in another way.
  for (size_t at = 0; at < words.size(); at += 7) {
    const Names few(words.begin() + static_cast<ptrdiff_t>(at), words.begin() + static_cast<ptrdiff_t>(std::min(at + 7, words.size())));
    const auto count = static_cast<int>(few.size());
    cases.push_back({Kind::odd, name + "[" + std::to_string(count) + "] = " + repeated(few, count) + end});
  }
  for (const char* shape : {"[]", "[17]", "[65]", "[3,5,17]"}) cases.push_back({Kind::odd, name + (shape + (" = " + range)) + end});
  cases.push_back({Kind::empty, name + "[3,0]" + end});
  cases.push_back({Kind::rank, name + "[1,2,1,2,3,2,1,3] = " + range + end});
  cases.push_back({Kind::odd, name + "[5,257] = " + range + end});
  if (several_tiles(from, to)) {
    const int rows = 1'400'000 / 257 / (byte_width(from.dtype) + byte_width(to.dtype));
    cases.push_back({Kind::large, name + "[" + std::to_string(rows) + ",257] = " + range + end});
  }
}

Numbers as(const Numbers& x, DType dtype) {
  Numbers result = x;
  result.dtype = dtype;
  if (!is_floating(dtype) && dtype != DType::boolean)
    for (Number& value : result.values) value = std::trunc(value);
  return result;
}

Row cast() {
  const auto converted = [](const Call& c) {
    for (const Named& to : dtypes)
      if (to.onnx == c.i("to", 0)) return std::vector{as(c[0], to.dtype)};
    return std::vector<Numbers>();
  };
  Cases cases = {{Kind::odd, "f32[3] = 0 1.5 -2; to=6, saturate=0"}};
  for (const Named& from : dtypes)
    for (const Named& to : dtypes) add_pair(cases, from, to, "; to=" + std::to_string(to.onnx));
  return {.type = "Cast", .reference = converted, .cases = cases, .without = one_input_only};
}

Row cast_like() {
  Cases cases = {{Kind::odd, "f32[3] = 0 1.5 -2, i32[0]; saturate=0"}, {Kind::broadcast, "f32[3,5] = -9..9, i64[2,7]"}};
  for (const Named& from : dtypes)
    for (const Named& to : dtypes) add_pair(cases, from, to, std::string(", ") + to.name + "[2] = 1");
  return {.type = "CastLike",
          .reference = [](const Call& c) { return std::vector{as(c[0], c[1].dtype)}; },
          .cases = cases,
          .without = no_strides};
}

}  // namespace
}  // namespace reference_pointwise_cast

std::vector<Row> pointwise_cast_rows() {
  using namespace reference_pointwise_cast;
  return {cast(), cast_like()};
}

}  // namespace heddle::conformance
