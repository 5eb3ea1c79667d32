#include "generate/move/scatter_launches.h"

#include <algorithm>
#include <utility>

#include "generate/dtype_names.h"
#include "shared/axes.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"

namespace heddle::cuda {
namespace {

using operators::Dims;
using operators::dims_of;
using operators::ScatterReduction;
using plugin::Status;

constexpr int64_t max_entries = 2048;  // that one block sorts

}  // namespace

void ScatterLaunches::all_parameters(const Operands& operands, const Numbers& n, ParameterWriter& writer) const {
  const char* const type = stored_type(operands.output(0)->dtype);
  writer.address("", type, "y", Address::output, 0);
  writer.address("const ", stored_type(operands.input(1)->dtype), "indices", Address::input, 1);
  writer.fault();
  writer.address("const ", type, "updates", Address::input, 2);
  parameters(operands, n, writer);
  if (lines_) return;
  writer.address("const ", "E", "from", Address::scratch, 0, n.from);
  writer.address("", "E", "to", Address::scratch, 0, n.to);
  writer.number("count", n.count);
  writer.number("slice", n.slice);
  writer.number("slice_divider", divider_of(n.slice, wide_));
  writer.number("stride", n.stride);
  writer.number("run", n.run);
  writer.number("rows", int64_t{1});
  writer.number("inner", int64_t{1});
}

Status ScatterLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  if (operands.writes_nothing() && !varies) return {};
  const heddle_tensor& y = *operands.output(0);
  Numbers n;
  HEDDLE_PLUGIN_CHECK(look(operands, &n));
  entries_ = std::clamp<int64_t>(power_above(n.count), 64, max_entries);
  divide(&n);
  wide_ = varies || is_wide(y.element_count) || is_wide(n.stride) || is_wide(operands.input(1)->element_count) ||
          is_wide(operands.input(2)->element_count);
  lines_ = by_lines(operands, n);
  write_bytes_copy(source, wide_ || is_wide(static_cast<int64_t>(y.byte_size)));
  KernelText text("scatter", wide_);
  text.type("E", wide_ ? "LongEntry" : "ShortEntry");
  text.type("S", stored_type(y.dtype));
  all_parameters(operands, n, text.parameters);
  text.constant("ENTRIES", entries_);
  text.constant("THREADS", entries_ / 2);
  text.function("S combined([[maybe_unused]] S old, S update)", reduction == ScatterReduction::none
                                                                    ? "return update;"
                                                                    : "return combination<" + std::to_string(static_cast<int>(reduction)) +
                                                                          ", S, " + compute_type(y.dtype) + ">(old, update);");
  functions(operands, &text);
  if (lines_) {
    text.kernel("lines", "scatter_lines<F>");
  } else {
    text.function("E entry(const Parameters& p, Index, Index update)", "return scatter_entry<F>(p, update);");
    text.block_kernel("sort", "sort_blocks<F>", entries_ / 2);
    text.kernel("merge", "merge_runs<F>");
    text.kernel("apply", "scatter_sorted<F>");
  }
  text.write({"block", "fault", "sort", "move", "pick", "scatter"}, source);
  return {};
}

Status ScatterLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  Numbers n;
  HEDDLE_PLUGIN_CHECK(look(operands, &n));
  divide(&n);
  plan_bytes_copy(operands, 0, plan);
  const auto add = [&](uint32_t kernel, unsigned int threads, int64_t blocks) {
    ParameterWriter writer(nullptr, &plan->add(kernel, threads, blocks));
    all_parameters(operands, n, writer);
  };
  if (lines_) {
    add(1, move_threads, blocks_of(n.lines, move_threads));
    return {};
  }
  if (n.count == 0) return {};
  n.to = plan->take(static_cast<uint64_t>(n.stride * entry_bytes()));
  if (n.stride > entries_) n.from = plan->take(static_cast<uint64_t>(n.stride * entry_bytes()));
  add(1, static_cast<unsigned int>(entries_ / 2), n.stride / entries_);
  for (n.run = entries_; n.run < n.stride; n.run *= 2) {
    std::swap(n.from, n.to);
    add(2, move_threads, blocks_of(n.stride, move_threads));
  }
  n.from = n.to;
  add(3, move_threads, blocks_of(n.count * n.slice, move_threads));
  return {};
}

// ---------------------------------------------------------------- ScatterElements

Status ScatterElementsLaunches::look(const Operands& operands, Numbers* n) const {
  const heddle_tensor& indices = *operands.input(1);
  int at = 0;
  if (!operators::normalize_axis(axis, indices.rank, &at)) return operators::axis_outside("axis", axis, indices.rank);
  n->count = indices.element_count;
  n->lines = n->count == 0 ? 0 : n->count / indices.dims[at];
  return {};
}

// Returns true if lines are short, or there are enough of them to keep a device busy.
bool ScatterElementsLaunches::by_lines(const Operands& operands, const Numbers& n) const {
  int at = 0;
  operators::normalize_axis(axis, operands.input(1)->rank, &at);
  return operands.input(1)->dims[at] <= 32 || n.lines >= 4096;
}

void ScatterElementsLaunches::functions(const Operands& operands, KernelText* text) const {
  text->constant("RANK", operands.input(1)->rank);
  text->function("bool target(const Parameters& p, Index update, Index& to)", "return element_target<F>(p, update, to);");
}

void ScatterElementsLaunches::parameters(const Operands& operands, const Numbers& n, ParameterWriter& writer) const {
  const heddle_tensor &data = *operands.input(0), &indices = *operands.input(1);
  int at = 0;
  operators::normalize_axis(axis, data.rank, &at);
  int64_t extents[HEDDLE_MAX_RANK], strides[HEDDLE_MAX_RANK], update_strides[HEDDLE_MAX_RANK];
  operators::dense_strides(dims_of(data), strides);
  operators::dense_strides(dims_of(indices), update_strides);
  std::copy_n(indices.dims, indices.rank, extents);
  writer.number("bound", data.dims[at]);
  writer.number("axis_stride", strides[at]);
  strides[at] = 0;
  if (lines_) {
    writer.number("lines", n.lines);
    writer.number("axis_count", extents[at]);
    writer.number("axis_update_stride", update_strides[at]);
    extents[at] = 1;
    writer.numbers("update_strides", update_strides, indices.rank);
  }
  write_walk(writer, extents, indices.rank, wide_);
  writer.numbers("strides", strides, data.rank);
}

// ---------------------------------------------------------------- ScatterND

Status ScatterNDLaunches::look(const Operands& operands, Numbers* n) const {
  const heddle_tensor &data = *operands.input(0), &indices = *operands.input(1);
  const int depth = static_cast<int>(dims_of(indices)[-1]);
  n->count = indices.element_count / std::max(depth, 1);
  n->slice = dims_of(data).count(depth, data.rank);
  return {};
}

void ScatterNDLaunches::functions(const Operands& operands, KernelText* text) const {
  text->constant("DEPTH", dims_of(*operands.input(1))[-1]);
  text->function("bool target(const Parameters& p, Index update, Index& to)", "return slice_target<F>(p, update, to);");
}

void ScatterNDLaunches::parameters(const Operands& operands, const Numbers&, ParameterWriter& writer) const {
  writer.numbers("bounds", operands.input(0)->dims, static_cast<int>(dims_of(*operands.input(1))[-1]));
}

}  // namespace heddle::cuda
