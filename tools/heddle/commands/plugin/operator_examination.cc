#include "commands/plugin/operator_examination.h"

#include <fmt/format.h>

#include <cstring>
#include <vector>

#include "commands/plugin/gradient_examination.h"
#include "commands/plugin/layout_examination.h"
#include "commands/plugin/pointwise_examination.h"
#include "plugin/operator_runner.h"
#include "tensors/inputs.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

const Shape shapes[] = {Shape{},        Shape{1},          Shape{7},    Shape{2, 3},    Shape{0, 3},
                        Shape{3, 1, 5}, Shape{2, 3, 5, 4}, Shape{4, 4}, Shape{300, 257}};

OperatorCall call_of(const OperatorSchema& schema) {
  OperatorCall call;
  call.domain = schema.domain;
  call.type = schema.name;
  call.version = schema.version;
  call.output_count = 0;
  for (uint32_t i = 0; i < schema.op->output_count && !(schema.op->outputs[i]->flags & HEDDLE_PORT_OPTIONAL); ++i) ++call.output_count;
  return call;
}

bool same_bits(const Blobs& a, const Blobs& b) {
  for (size_t i = 0; i < a.size(); ++i)
    if (a[i]->shape != b[i]->shape || std::memcmp(a[i]->data, b[i]->data, static_cast<size_t>(a[i]->bytes)) != 0) return false;
  return a.size() == b.size();
}

// For an input whose schema does not allow `dtype`: something that it does.
DType fitting(const heddle_port& port, DType dtype) {
  if (port.dtypes & HEDDLE_DTYPE_BIT(static_cast<int>(dtype))) return dtype;
  for (const DType other : {DType::i64, DType::f32, DType::boolean})
    if (port.dtypes & HEDDLE_DTYPE_BIT(static_cast<int>(other))) return other;
  return dtype;
}

// Positive: the input holds indices below it.
int64_t index_bound(const heddle_port& port, const Shape& of) {
  if (port.index_bound_port < 0 || of.rank() == 0) return 0;
  const int axis = port.index_bound_axis >= 0 ? port.index_bound_axis : 0;
  return axis < of.rank() ? of[axis] : 0;
}

// Where the schema lets an output take an input's bytes: it may make no difference, tile by tile.
std::string check_in_place(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs) {
  for (uint32_t o = 0; o < outputs.size(); ++o) {
    const int alias = schema.alias_input(o);
    for (uint32_t i = 0; i < call.inputs.size(); ++i) {
      if (alias != HEDDLE_ALIAS_ANY && alias != static_cast<int>(i)) continue;
      const auto& input = call.inputs[i];
      if (!input || input->bytes != outputs[o]->bytes || byte_width(input->dtype) != byte_width(outputs[o]->dtype)) continue;
      OperatorCall shared = call;
      shared.in_place = {{o, i}};
      for (const uint64_t split : {uint64_t{0}, uint64_t{3}}) {
        shared.split_seed = split;
        const auto result = run_operator(registry, shared);
        if (!result.ok()) return fmt::format("fails with output {} in place of input {}: {}", o, i, result.status().text());
        if (!same_bits(outputs, *result)) return fmt::format("gives other bits with output {} in place of input {}", o, i);
      }
    }
  }
  return {};
}

// Why it would not have the inputs with the most dimensions, which says more than what it thinks of scalars.
struct Refusal {
  int rank = -1;
  std::string text;
};

std::string examine_with(const RegistrySnapshot& registry, const OperatorSchema& schema, const Shape& shape, DType dtype, uint64_t seed,
                         DeviceExamination* device, bool* fitted, Refusal* refusal) {
  OperatorCall call = call_of(schema);
  if (call.output_count == 0) return {};
  uint32_t inputs = 0;
  for (uint32_t i = 0; i < schema.op->input_count; ++i)
    if (!(schema.op->inputs[i]->flags & HEDDLE_PORT_OPTIONAL)) inputs = i + 1;
  for (uint32_t i = 0; i < inputs; ++i)
    call.inputs.push_back(random_blob(fitting(*schema.op->inputs[i], dtype), shape, seed + i, index_bound(*schema.op->inputs[i], shape)));
  call.random_seed = seed;
  const std::string where = fmt::format(" ({}{}, seed {})", to_string(dtype), shape.text(), seed);
  CallEnd end;
  const auto first = run_operator(registry, call, &end);
  if (!first.ok()) {
    if (!end.refused()) return first.status().text() + where;
    if (shape.rank() > refusal->rank)
      *refusal = {shape.rank(), fmt::format("{}{}: {}", to_string(dtype), shape.text(), first.status().diagnostic().message)};
    return {};
  }
  *fitted = true;
  if (const auto cost = operator_cost(registry, call); !cost.ok()) return fmt::format("gives no cost: {}{}", cost.status().text(), where);
  for (const uint64_t split : {uint64_t{3}, uint64_t{4}}) {
    OperatorCall again = call;
    again.split_seed = split;
    const auto other = run_operator(registry, again);
    if (!other.ok()) return fmt::format("fails when its tiles are split: {}{}", other.status().text(), where);
    if (!same_bits(*first, *other)) return fmt::format("gives other bits when its tiles are split{}", where);
  }
  OperatorCall dirty = call;
  dirty.fill = uint8_t{0xa5};
  const auto over_other_bytes = run_operator(registry, dirty);
  if (!over_other_bytes.ok()) return fmt::format("fails over memory that holds something: {}{}", over_other_bytes.status().text(), where);
  if (!same_bits(*first, *over_other_bytes))
    return fmt::format("leaves elements unwritten, or reads what was in its memory before{}", where);
  OperatorCall constant = call;
  constant.constant_inputs = true;
  const auto other = run_operator(registry, constant);
  if (!other.ok()) return fmt::format("fails with constant inputs: {}{}", other.status().text(), where);
  if (!same_bits(*first, *other)) return fmt::format("gives other bits with constant inputs{}", where);
  std::string wrong = check_in_place(registry, schema, call, *first);
  if (wrong.empty() && device) wrong = device->examine(schema, call, *first);
  if (wrong.empty()) wrong = examine_pointwise(registry, schema, call, *first);
  if (wrong.empty() && shape.element_count() < 1000) wrong = examine_layouts(registry, call, *first);
  if (wrong.empty() && dtype == DType::f32 && shape.element_count() > 0 && shape.element_count() < 1000)
    wrong = examine_gradient(registry, schema, call, *first, seed);
  return wrong.empty() ? "" : wrong + where;
}

}  // namespace

Verdict examine_operator(const RegistrySnapshot& registry, const OperatorSchema& schema, uint64_t seed, DeviceExamination* device) {
  bool fitted = false;
  Refusal refusal;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64, DType::u8, DType::boolean})
    for (const Shape& shape : shapes) {
      const std::string wrong = examine_with(registry, schema, shape, dtype, seed, device, &fitted, &refusal);
      if (!wrong.empty()) return Verdict::of(wrong);
    }
  if (fitted && device && !device->ran()) return {Verdict::Kind::not_run, fmt::format("on {}: {}", device->device(), device->refusal())};
  if (fitted) return Verdict::of(examine_special_values(registry, schema, seed));
  return {Verdict::Kind::not_run,
          refusal.text.empty() ? "it has no outputs that are not optional" : fmt::format("no generic inputs fit it, {}", refusal.text)};
}

}  // namespace heddle::tool
