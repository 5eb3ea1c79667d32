#include "generate/move/pick_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"

namespace heddle::cuda {

using operators::Dims;
using operators::dims_of;
using plugin::Status;

Status PickLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  varies_ = varies || reads_operands(operands);
  if (operands.writes_nothing() && !varies_) return {};
  wide_ = varies_ || is_wide(operands.output(0)->element_count);
  // Index tuples may hold more numbers than the output has elements.
  for (uint32_t i = 0; i < operands.input_count; ++i) wide_ = wide_ || (operands.input(i) && is_wide(operands.input(i)->element_count));
  unit_ = varies_ ? width(operands) : common_unit(widest_unit, row_bytes(operands));
  KernelText text("pick", wide_);
  text.type("T", unit_type(unit_));
  HEDDLE_PLUGIN_CHECK(all_parameters(operands, true, text.parameters));
  text.function("T nothing(const Parameters& p)", "return " + nothing(operands) + ";");
  functions(operands, &text);
  text.kernel("pick", std::string("pick<") + way() + ", F>");
  text.write({"fault", "move", "pick"}, source);
  return {};
}

Status PickLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing() || !knows_operands(operands)) return {};
  ParameterWriter writer(nullptr, &plan->add(0, move_threads, blocks_of(units(operands), move_threads)));
  return all_parameters(operands, false, writer);
}

Status PickLaunches::all_parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const {
  writer.address("", "T", "y", Address::output, 0);
  writer.address("const ", "T", "x", Address::input, source_port());
  writer.number("count", units(operands));
  return parameters(operands, for_text, writer);
}

// ---------------------------------------------------------------- Gather

int64_t GatherLaunches::row_bytes(const Operands& operands) const {
  const Dims dims = dims_of(*operands.input(0));
  int at = 0;
  return operators::normalize_axis(axis, dims.rank, &at) ? dims.count(at + 1, dims.rank) * width(operands) : 1;
}

Status GatherLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const heddle_tensor &data = *operands.input(0), &indices = *operands.input(1);
  int at = 0;
  if (!operators::normalize_axis(axis, data.rank, &at)) return operators::axis_outside("axis", axis, data.rank);
  writer.address("const ", stored_type(indices.dtype), "indices", Address::input, 1);
  writer.fault();
  count(writer, "row", "row_divider", row_bytes(operands) / unit_);
  count(writer, "picks", "pick_divider", indices.element_count);
  writer.number("bound", data.dims[at]);
  return {};
}

// ---------------------------------------------------------------- GatherND

int64_t GatherNDLaunches::row_bytes(const Operands& operands) const {
  const Dims data = dims_of(*operands.input(0)), indices = dims_of(*operands.input(1));
  return data.count(static_cast<int>(batch + indices[-1]), data.rank) * width(operands);
}

void GatherNDLaunches::functions(const Operands& operands, KernelText* text) const {
  text->constant("DEPTH", dims_of(*operands.input(1))[-1]);
}

Status GatherNDLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const heddle_tensor &data = *operands.input(0), &indices = *operands.input(1);
  const int depth = static_cast<int>(dims_of(indices)[-1]);
  const int64_t batches = dims_of(data).count(0, static_cast<int>(batch));
  writer.address("const ", stored_type(indices.dtype), "indices", Address::input, 1);
  writer.fault();
  count(writer, "row", "row_divider", row_bytes(operands) / unit_);
  count(writer, "picks", "pick_divider", indices.element_count / depth / std::max<int64_t>(batches, 1));
  writer.numbers("bounds", data.dims + batch, depth);
  return {};
}

// ---------------------------------------------------------------- GatherElements

void GatherElementsLaunches::functions(const Operands& operands, KernelText* text) const {
  text->constant("RANK", operands.input(0)->rank);
}

Status GatherElementsLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const heddle_tensor &data = *operands.input(0), &indices = *operands.input(1);
  int at = 0;
  if (!operators::normalize_axis(axis, data.rank, &at)) return operators::axis_outside("axis", axis, data.rank);
  int64_t strides[HEDDLE_MAX_RANK];
  operators::dense_strides(dims_of(data), strides);
  writer.address("const ", stored_type(indices.dtype), "indices", Address::input, 1);
  writer.fault();
  writer.number("bound", data.dims[at]);
  writer.number("axis_stride", strides[at]);
  strides[at] = 0;
  write_walk(writer, indices.dims, indices.rank, wide_);
  writer.numbers("strides", strides, data.rank);
  return {};
}

// ---------------------------------------------------------------- ReverseSequence

int64_t ReverseLaunches::row_bytes(const Operands& operands) const {
  const Dims dims = dims_of(*operands.input(0));
  return dims.count(2, dims.rank) * width(operands);
}

void ReverseLaunches::functions(const Operands&, KernelText* text) const {
  text->constant("TIME_FIRST", time_first);
}

Status ReverseLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const heddle_tensor& x = *operands.input(0);
  writer.address("const ", "i64", "lengths", Address::input, 1);
  writer.fault();
  count(writer, "row", "row_divider", row_bytes(operands) / unit_);
  writer.number("outer", x.dims[0]);
  count(writer, "inner", "inner_divider", x.dims[1]);
  return {};
}

// ---------------------------------------------------------------- Trilu

void TriluLaunches::functions(const Operands& operands, KernelText* text) const {
  text->constant("UPPER", upper);
  text->function("i64 diagonal(const Parameters& p)", operands.input(1) ? "return *p.k;" : "return 0;");
}

Status TriluLaunches::parameters(const Operands& operands, bool, ParameterWriter& writer) const {
  const Dims dims = dims_of(*operands.input(0));
  if (operands.input(1)) writer.address("const ", "i64", "k", Address::input, 1);
  count(writer, "rows", "row_divider", dims[-2]);
  count(writer, "columns", "column_divider", dims[-1]);
  return {};
}

// ---------------------------------------------------------------- OneHot

Status OneHotLaunches::parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const {
  const heddle_tensor &indices = *operands.input(0), &y = *operands.output(0);
  int at = 0;
  if (!operators::normalize_axis(axis, y.rank, &at)) return operators::axis_outside("axis", axis, y.rank);
  if (!for_text)
    HEDDLE_PLUGIN_CHECK(operators::check_planned({{"depth", operands.input(1)}}, y, [&](operators::Extents* to) {
      return operators::one_hot_extents(dims_of(indices), at, *operands.input(1), to);
    }));
  writer.address("const ", stored_type(indices.dtype), "indices", Address::input, 0);
  count(writer, "depth", "depth_divider", y.dims[at]);
  count(writer, "after", "after_divider", dims_of(y).count(at + 1, y.rank));
  return {};
}

// ---------------------------------------------------------------- Pad

Status PadLaunches::look(const Operands& operands, operators::PadPlan* plan) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  operators::Pads pads;
  const heddle_tensor *const amounts = operands.input(operators::pads_port), *const axes = operands.input(operators::pad_axes_port);
  HEDDLE_PLUGIN_CHECK(operators::check_planned({{"pads", amounts}, {"axes", axes}}, y, [&](operators::Extents* to) {
    return operators::pad_extents(dims_of(x), *amounts, axes, mode, &pads, to);
  }));
  *plan = operators::pad_plan(x, y, pads);
  return {};
}

int64_t PadLaunches::row_bytes(const Operands& operands) const {
  operators::PadPlan plan;
  return look(operands, &plan).ok() ? plan.block : 1;
}

std::string PadLaunches::nothing(const Operands& operands) const {
  return operands.input(operators::pad_value_port) ? "repeated<T>(*p.value)" : "T()";
}

void PadLaunches::functions(const Operands& operands, KernelText* text) const {
  text->constant("RANK", std::max(1, operands.input(0)->rank));
  text->constant("MODE", static_cast<int64_t>(mode));
}

Status PadLaunches::parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const {
  const int rank = std::max(1, operands.input(0)->rank);
  operators::PadPlan plan;
  if (!for_text) HEDDLE_PLUGIN_CHECK(look(operands, &plan));
  // Dimensions that were merged into the block come first, with extent 1.
  int64_t extents[HEDDLE_MAX_RANK], before[HEDDLE_MAX_RANK], inputs[HEDDLE_MAX_RANK], strides[HEDDLE_MAX_RANK];
  for (int d = 0; d < rank; ++d) {
    const int of = d - (rank - plan.rank);
    extents[d] = of < 0 ? 1 : plan.out[of];
    before[d] = of < 0 ? 0 : plan.before[of];
    inputs[d] = of < 0 ? 1 : plan.in[of];
    strides[d] = of < 0 ? 0 : plan.stride[of] / unit_;
  }
  if (operands.input(operators::pad_value_port))
    writer.address("const ", unit_type(width(operands)), "value", Address::input, operators::pad_value_port);
  count(writer, "row", "row_divider", plan.block / unit_);
  write_walk(writer, extents, rank, wide_);
  writer.numbers("before", before, rank);
  writer.numbers("inputs", inputs, rank);
  writer.numbers("strides", strides, rank);
  return {};
}

}  // namespace heddle::cuda
