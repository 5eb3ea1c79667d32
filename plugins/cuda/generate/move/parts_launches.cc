#include "generate/move/parts_launches.h"

#include <algorithm>

#include "generate/move/move_source.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"

namespace heddle::cuda {
namespace {

using plugin::Status;

constexpr int64_t units_of_a_block = 4 * move_threads;

}  // namespace

void PartsLaunches::look(const heddle_tensor& tensor, int64_t* outer, int64_t* inner, int64_t* extent) const {
  *outer = 1;
  *inner = static_cast<int64_t>(plugin::byte_width(tensor.dtype));
  *extent = tensor.dims[at_];
  bool behind = false;
  for (int i = 0; i < tensor.rank; ++i) {
    const int d = tensor.layout.rank == tensor.rank ? tensor.layout.order[i] : i;
    if (d == at_)
      behind = true;
    else
      *(behind ? inner : outer) *= tensor.dims[d];
  }
}

Status PartsLaunches::check_sizes(const Operands& operands) const {
  const heddle_tensor* const sizes = into_whole ? nullptr : operands.input(1);
  if (!sizes || !varies_) return {};
  const heddle_tensor& x = *operands.input(0);
  for (uint32_t i = 0; i < operands.output_count; ++i) {
    if (!operands.output(i)) continue;
    HEDDLE_PLUGIN_CHECK(operators::check_planned({{"split", sizes}}, *operands.output(i), [&](operators::Extents* to) -> Status {
      if (sizes->element_count != operands.output_count)
        return plugin::invalid("there are " + std::to_string(operands.output_count) + " outputs");
      for (int d = 0; d < x.rank; ++d) to->push(d == at_ ? operators::integer_at(*sizes, i) : x.dims[d]);
      return {};
    }));
  }
  return {};
}

int64_t PartsLaunches::extent_of_absent(const Operands& operands, uint32_t i, int64_t offset) const {
  if (const heddle_tensor* sizes = operands.input(1)) return operators::integer_at(*sizes, i);
  const int64_t extent = operands.input(0)->dims[at_], count = operands.output_count;
  return std::clamp<int64_t>(extent - offset, 0, (extent + count - 1) / count);
}

void PartsLaunches::parameters(const Batch& batch, ParameterWriter& writer) const {
  writer.address(into_whole ? "" : "const ", "T", "whole", into_whole ? Address::output : Address::input, 0);
  for (uint32_t i = 0; i < batch.count; ++i)
    writer.address_of_many(into_whole ? "const " : "", "T", "part", i, into_whole ? Address::input : Address::output, batch.ports[i]);
  const int count = static_cast<int>(batch.count);
  writer.numbers("block", batch.block, count);
  writer.numbers("row", batch.row, count);
  writer.numbers("divider", batch.divider, count);
  writer.numbers("units", batch.units, count);
  writer.numbers("offset", batch.offset, count);
  writer.number("blocks", batch.blocks);
  writer.number("whole_row", batch.whole_row);
}

Status PartsLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor& whole = into_whole ? *operands.output(0) : *operands.input(0);
  varies_ = varies || (!into_whole && !operands.is_constant(1));
  if (!operators::normalize_axis(axis, whole.rank, &at_)) return operators::axis_outside("axis", axis, whole.rank);
  if (operands.writes_nothing() && !varies_) return {};
  wide_ = varies_ || is_wide(whole.element_count);
  const uint32_t ports = port_count(operands);
  constexpr uint32_t max_parts = LaunchPlan::max_launches * max_together;
  if (ports > max_parts) return plugin::unsupported(std::to_string(ports) + " parts, expected at most " + std::to_string(max_parts));
  unit_ = varies_ ? static_cast<int64_t>(plugin::byte_width(whole.dtype)) : widest_unit;
  uint32_t parts = 0;
  for (uint32_t i = 0; i < ports; ++i) {
    const heddle_tensor* const tensor = part(operands, i);
    if (!into_whole && !tensor && varies_ && operands.input(1))
      return plugin::unsupported("Split with sizes known only while running needs all of its outputs");
    int64_t outer = 0, inner = 0, extent = 0;
    if (tensor) look(*tensor, &outer, &inner, &extent);
    // Offsets are sums of rows of the parts that are present; those of absent parts are multiples of one step along the axis.
    if (tensor && !varies_) unit_ = common_unit(unit_, inner * extent);
    if (!tensor && !varies_) {
      look(whole, &outer, &inner, &extent);
      unit_ = common_unit(unit_, inner);
    }
    parts += tensor ? 1 : 0;
  }
  Batch batch;
  batch.count = std::min(parts, max_together);
  std::fill(batch.ports, batch.ports + max_together, 0);
  KernelText text("parts", wide_);
  text.type("T", unit_type(unit_));
  text.constant("PARTS", batch.count);
  parameters(batch, text.parameters);
  text.functions +=
      "  template <class P>\n  HEDDLE_INLINE_MEMBER void copy(const P& p, int part, Index at, Index whole) {\n    switch (part) {\n";
  for (uint32_t i = 0; i < batch.count; ++i) {
    const std::string one = "p.part" + std::to_string(i) + "[at]", all = "p.whole[whole]";
    text.functions +=
        "      case " + std::to_string(i) + ":\n        " + (into_whole ? all + " = " + one : one + " = " + all) + ";\n        break;\n";
  }
  text.functions += "    }\n  }\n";
  text.kernel("copy", "copy_parts<F>");
  text.write({"move"}, source);
  return {};
}

Status PartsLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing() || (!into_whole && !operands.is_known(1))) return {};
  HEDDLE_PLUGIN_CHECK(check_sizes(operands));
  const heddle_tensor& whole = into_whole ? *operands.output(0) : *operands.input(0);
  int64_t outer = 0, inner = 0, extent = 0, offset = 0;
  look(whole, &outer, &inner, &extent);
  uint32_t there = 0;
  for (uint32_t i = 0; i < port_count(operands); ++i) there += part(operands, i) ? 1 : 0;
  const uint32_t together = std::min(there, max_together);
  Batch batch;
  batch.whole_row = extent * inner / unit_;
  const auto add = [&] {
    if (batch.blocks > 0) {
      // Slots for which the last launch has no parts begin after its blocks.
      for (; batch.count < together; ++batch.count) {
        batch.ports[batch.count] = batch.ports[0];
        batch.block[batch.count] = batch.blocks;
        batch.row[batch.count] = batch.units[batch.count] = batch.offset[batch.count] = 0;
        batch.divider[batch.count] = divider_of(1, wide_);
      }
      ParameterWriter writer(nullptr, &plan->add(0, move_threads, batch.blocks));
      parameters(batch, writer);
    }
    batch.count = 0;
    batch.blocks = 0;
  };
  for (uint32_t i = 0; i < port_count(operands); ++i) {
    const heddle_tensor* const tensor = part(operands, i);
    const int64_t steps = tensor ? tensor->dims[at_] : extent_of_absent(operands, i, offset);
    if (tensor) {
      const uint32_t n = batch.count++;
      batch.ports[n] = i;
      batch.row[n] = steps * inner / unit_;
      batch.divider[n] = divider_of(batch.row[n], wide_);
      batch.units[n] = outer * batch.row[n];
      batch.offset[n] = offset * inner / unit_;
      batch.block[n] = batch.blocks;
      batch.blocks += blocks_of(batch.units[n], units_of_a_block);
      if (batch.count == together) add();
    }
    offset += steps;
  }
  if (batch.count > 0) add();
  return {};
}

}  // namespace heddle::cuda
