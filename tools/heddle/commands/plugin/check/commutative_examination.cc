#include "commands/plugin/check/commutative_examination.h"

#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "commands/plugin/check/special_values.h"

namespace heddle::tool {
namespace {

bool same_element(DType dtype, const std::byte* a, const std::byte* b) {
  return std::memcmp(a, b, static_cast<size_t>(byte_width(dtype))) == 0 || (is_nan(dtype, a) && is_nan(dtype, b)) ||
         (is_zero(dtype, a) && is_zero(dtype, b));
}

}  // namespace

std::string examine_commutative(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call,
                                const Blobs& outputs) {
  if (!schema.has_trait(HEDDLE_TRAIT_COMMUTATIVE) || call.inputs.size() != 2 || !call.inputs[0] || !call.inputs[1]) return {};
  OperatorCall swapped = call;
  std::swap(swapped.inputs[0], swapped.inputs[1]);
  const auto result = run_operator(registry, swapped);
  if (!result.ok()) return fmt::format("is to be commutative, and fails with its inputs swapped: {}", result.status().text());
  for (size_t o = 0; o < outputs.size(); ++o) {
    const Blob &one = *outputs[o], &other = *(*result)[o];
    if (one.dtype != other.dtype || one.shape != other.shape)
      return fmt::format("is to be commutative, and output {} is {} with its inputs swapped, else {}", o, other.shape.text(),
                         one.shape.text());
    const int64_t width = byte_width(one.dtype);
    for (int64_t at = 0; at < one.bytes; at += width)
      if (!same_element(one.dtype, one.data + at, other.data + at))
        return fmt::format("is to be commutative, and element {} of output {} is another with its inputs swapped", at / width, o);
  }
  return {};
}

std::string examine_commutative_values(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed) {
  if (!schema.has_trait(HEDDLE_TRAIT_COMMUTATIVE)) return {};
  const Shape shape{24, 24};
  for (int id = static_cast<int>(DType::none) + 1; id < HEDDLE_DTYPE_COUNT; ++id) {
    const auto dtype = static_cast<DType>(id);
    if (!(schema.op->inputs[0]->dtypes & HEDDLE_DTYPE_BIT(id)) || !special_blob(dtype, 0, shape, seed)) continue;
    OperatorCall call;
    call.domain = schema.domain;
    call.type = schema.name;
    call.version = schema.version;
    call.inputs = {special_blob(dtype, 0, shape, seed), special_blob(dtype, 1, shape, seed + 1)};
    const auto outputs = run_operator(registry, call);
    if (!outputs.ok()) continue;  // a dtype that it refuses
    const std::string wrong = examine_commutative(registry, schema, call, *outputs);
    if (!wrong.empty()) return fmt::format("{} (special values, {}{}, seed {})", wrong, to_string(dtype), shape.text(), seed);
  }
  return {};
}

}  // namespace heddle::tool
