#include "commands/plugin/check/pointwise_examination.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "plugin/pointwise_lowering.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

bool has_kernel_beside_text(const RegistrySnapshot& registry, const OperatorSchema& schema) {
  if (!schema.op->pointwise || schema.op->output_count != 1) return false;
  for (const auto& plugin : registry.plugins())
    for (const KernelEntry& entry : plugin->kernels)
      if (schema.domain == (entry.kernel->domain ? entry.kernel->domain : "") && schema.name == entry.kernel->operator_name &&
          schema.version == entry.kernel->version && std::strcmp(entry.kernel->device_kind, "cpu") == 0)
        return true;
  return false;
}

template <class T>
std::vector<T> special_integers() {
  using Limits = std::numeric_limits<T>;
  return {T(0), T(1), T(2), static_cast<T>(-1), T(3), T(7), Limits::min(), Limits::max(), static_cast<T>(Limits::max() - 1)};
}
template <class T>
std::vector<T> special_floats() {
  using Limits = std::numeric_limits<T>;
  const T inf = Limits::infinity(), nan = Limits::quiet_NaN();
  return {nan,
          -nan,
          inf,
          -inf,
          T(0),
          -T(0),
          T(1),
          T(-1),
          T(2),
          T(-2),
          T(0.5),
          T(-0.5),
          T(1) / T(3),
          Limits::denorm_min(),
          -Limits::denorm_min(),
          Limits::min(),
          -Limits::min(),
          Limits::max(),
          -Limits::max(),
          T(6),
          T(-6),
          T(3),
          T(2.5),
          T(-2.5),
          T(100),
          T(-100),
          T(1e-40),
          T(16777217)};
}
// f16 and bf16 by their bits.
std::vector<uint16_t> special_halves(DType dtype) {
  const bool brain = dtype == DType::bf16;
  const uint16_t inf = brain ? 0x7f80 : 0x7c00, one = brain ? 0x3f80 : 0x3c00, third = brain ? 0x3eab : 0x3555,
                 six = brain ? 0x40c0 : 0x4600;
  std::vector<uint16_t> bits;
  for (const unsigned sign : {0u, 0x8000u})
    for (const unsigned magnitude :
         {0u, 1u, unsigned{inf}, inf + 0x40u, inf - 1u, unsigned{one}, unsigned{third}, unsigned{six}, brain ? 0x80u : 0x400u})
      bits.push_back(static_cast<uint16_t>(sign | magnitude));
  return bits;
}

// Element [i][k] of the first input is special value i, of the others value k, and so on.
template <class T>
std::shared_ptr<const Blob> spread(DType dtype, const std::vector<T>& values, uint32_t input, const Shape& shape, uint64_t seed) {
  std::byte* data = nullptr;
  auto blob = Blob::allocate(dtype, shape, &data);
  const auto n = values.size();
  for (size_t i = 0; i < static_cast<size_t>(shape.element_count()); ++i) {
    const size_t at = input == 0 ? i / n : (i + (input - 1) * (i / n + seed)) % n;
    std::memcpy(data + i * sizeof(T), &values[at % n], sizeof(T));
  }
  return blob;
}

std::shared_ptr<const Blob> special_blob(DType dtype, uint32_t input, const Shape& shape, uint64_t seed) {
  switch (dtype) {
    case DType::f32:
      return spread(dtype, special_floats<float>(), input, shape, seed);
    case DType::f64:
      return spread(dtype, special_floats<double>(), input, shape, seed);
    case DType::f16:
    case DType::bf16:
      return spread(dtype, special_halves(dtype), input, shape, seed);
    case DType::i8:
      return spread(dtype, special_integers<int8_t>(), input, shape, seed);
    case DType::i16:
      return spread(dtype, special_integers<int16_t>(), input, shape, seed);
    case DType::i32:
      return spread(dtype, special_integers<int32_t>(), input, shape, seed);
    case DType::i64:
      return spread(dtype, special_integers<int64_t>(), input, shape, seed);
    case DType::u8:
      return spread(dtype, special_integers<uint8_t>(), input, shape, seed);
    case DType::u16:
      return spread(dtype, special_integers<uint16_t>(), input, shape, seed);
    case DType::u32:
      return spread(dtype, special_integers<uint32_t>(), input, shape, seed);
    case DType::u64:
      return spread(dtype, special_integers<uint64_t>(), input, shape, seed);
    case DType::boolean:
      return spread(dtype, std::vector<uint8_t>{0, 1}, input, shape, seed);
    default:
      return nullptr;
  }
}

template <class T>
bool is_nan(const std::byte* p) {
  T value;
  std::memcpy(&value, p, sizeof(value));
  return std::isnan(value);
}
bool is_nan(DType dtype, const std::byte* p) {
  if (dtype == DType::f32) return is_nan<float>(p);
  if (dtype == DType::f64) return is_nan<double>(p);
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  uint16_t bits = 0;
  std::memcpy(&bits, p, sizeof(bits));
  return (bits & 0x7fff) > (dtype == DType::f16 ? 0x7c00 : 0x7f80);
}

std::string bits_text(const std::byte* p, size_t width) {
  static const char digits[] = "0123456789abcdef";
  std::string text = "0x";
  for (size_t i = width; i-- > 0;) {
    const auto byte = static_cast<unsigned>(p[i]);
    text += {digits[byte >> 4], digits[byte & 15]};
  }
  return text;
}

std::string first_difference(const Blob& own, const Blob& text) {
  if (own.dtype != text.dtype || own.shape != text.shape) return "another type";
  const size_t width = byte_width(own.dtype);
  for (size_t i = 0; i < static_cast<size_t>(own.shape.element_count()); ++i) {
    const std::byte *a = own.data + i * width, *b = text.data + i * width;
    if (std::memcmp(a, b, width) == 0 || (is_nan(own.dtype, a) && is_nan(own.dtype, b))) continue;
    return fmt::format("output element {} is {} by the kernel, {} by the text", i, bits_text(a, width), bits_text(b, width));
  }
  return {};
}

}  // namespace

std::string examine_pointwise(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                              const Blobs& outputs) {
  if (outputs.size() != 1 || !has_kernel_beside_text(registry, schema) || !registry.find_operator("heddle", "Pointwise")) return {};
  std::vector<bool> present;
  OperatorCall text;
  DType dtype = DType::none;
  for (const auto& input : call.inputs) {
    present.push_back(input != nullptr);
    if (!input) continue;
    if (dtype != DType::none && input->dtype != dtype) return {};
    dtype = input->dtype;
  }
  const auto program = pointwise_program(schema, call.attributes, present);
  if (!program.ok()) return {};  // an attribute without a number: nothing would fuse it
  text.domain = "heddle";
  text.type = "Pointwise";
  for (const auto& input : call.inputs) text.inputs.push_back(input ? input : call.inputs[0]);  // the text names no absent input
  text.attributes = {{"program", *program}, {"dtype", static_cast<int64_t>(outputs[0]->dtype)}};
  const auto expected = run_operator(registry, text);
  if (!expected.ok()) return fmt::format("its pointwise text {} does not run: {}", *program, expected.status().text());
  const std::string difference = first_difference(*outputs[0], *(*expected)[0]);
  return difference.empty() ? "" : fmt::format("differs from its pointwise text {}: {}", *program, difference);
}

std::string examine_special_values(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed) {
  if (!has_kernel_beside_text(registry, schema)) return {};
  for (int id = static_cast<int>(DType::none) + 1; id < HEDDLE_DTYPE_COUNT; ++id) {
    const auto dtype = static_cast<DType>(id);
    bool fits = true;
    for (uint32_t i = 0; i < schema.op->input_count; ++i) fits = fits && (schema.op->inputs[i]->dtypes & HEDDLE_DTYPE_BIT(id));
    if (!fits || !special_blob(dtype, 0, Shape{}, seed)) continue;
    for (const Shape& shape : {Shape{24, 24}, Shape{}})
      for (const bool optional : {false, true}) {
        OperatorCall call;
        call.domain = schema.domain;
        call.type = schema.name;
        call.version = schema.version;
        for (uint32_t i = 0; i < (optional ? schema.op->input_count : schema.required_inputs); ++i) {
          const bool beside = (schema.op->inputs[i]->flags & HEDDLE_PORT_OPTIONAL) != 0;  // often a number
          call.inputs.push_back(special_blob(dtype, i, beside ? Shape{} : shape, seed + i));
        }
        CallEnd end;
        const auto outputs = run_operator(registry, call, &end);
        const std::string where = fmt::format(" (special values, {}{}, seed {})", to_string(dtype), shape.text(), seed);
        if (!outputs.ok() && end.refused()) continue;
        if (!outputs.ok()) return outputs.status().text() + where;
        const std::string wrong = examine_pointwise(registry, schema, call, *outputs);
        if (!wrong.empty()) return wrong + where;
      }
  }
  return {};
}

}  // namespace heddle::tool
