#include "commands/plugin/check/pointwise_examination.h"

#include <fmt/format.h>

#include <cstring>

#include "commands/plugin/check/special_values.h"
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
  if (!program.ok()) return {};  // an attribute is not a number: it would never be fused
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
          const bool beside = (schema.op->inputs[i]->flags & HEDDLE_PORT_OPTIONAL) != 0;  // optional operands are often numbers
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
