#include "generate/select/compact_launches.h"

#include <algorithm>
#include <string>

#include "generate/dtype_names.h"
#include "shared/axes.h"
#include "shared/dims.h"

namespace heddle::cuda {

using operators::Dims;
using operators::dims_of;
using plugin::Status;

namespace {

constexpr int64_t max_compact_parts = 1024, min_compact_part = int64_t{8} * move_threads;

int64_t part_of(int64_t positions) {
  return std::max(min_compact_part, blocks_of(positions, max_compact_parts));
}

}  // namespace

void CompactLaunches::all_parameters(const Operands& operands, const Scratch& scratch, ParameterWriter& writer) const {
  const int64_t count = positions(operands);
  writer.address("", "i64", "counts", Address::scratch, 0, scratch.counts);
  writer.address("", "i64", "total", Address::scratch, 0, scratch.counts + max_compact_parts * sizeof(int64_t));
  writer.address("", "i64", "extent", Address::extent, 0);
  writer.number("count", count);
  writer.number("part", part_of(count));
  writer.number("parts", blocks_of(count, part_of(count)));
  parameters(operands, scratch, writer);
}

Status CompactLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  wide_ = varies || is_wide(operands.input(0)->element_count) || is_wide(positions(operands));
  KernelText text("compact", wide_);
  text.constant("THREADS", move_threads);
  describe(operands, &text);
  all_parameters(operands, {}, text.parameters);
  text.block_kernel("count", "count_parts<F>", move_threads);
  text.block_kernel("place", "place_parts<F>", move_threads);
  text.block_kernel("put", "put_parts<F>", move_threads);
  if (keeps_places()) text.kernel("copy", "copy_chosen<F>");
  text.write({"block", "move", "compact"}, source);
  return {};
}

// The extent is written even if nothing is found, or there is nothing to look at.
Status CompactLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  const int64_t count = positions(operands), parts = blocks_of(count, part_of(count));
  Scratch scratch;
  scratch.counts = plan->take((max_compact_parts + 1) * sizeof(int64_t));
  if (keeps_places()) scratch.places = plan->take(static_cast<uint64_t>(count) * (wide_ ? sizeof(uint64_t) : sizeof(uint32_t)));
  const auto add = [&](uint32_t kernel, int64_t blocks) {
    ParameterWriter writer(nullptr, &plan->add(kernel, move_threads, blocks));
    all_parameters(operands, scratch, writer);
  };
  add(0, parts);
  add(1, 1);
  add(2, parts);
  if (keeps_places()) add(3, blocks_of(units(operands), move_threads));
  return {};
}

// ---------------------------------------------------------------- NonZero

void NonZeroLaunches::describe(const Operands& operands, KernelText* text) {
  const heddle_tensor& x = *operands.input(0);
  text->type("T", unit_type(static_cast<int64_t>(plugin::byte_width(x.dtype))));
  text->constant("RANK", x.rank);
  // A mask of all bits but the sign of floats, whose zeros have either sign.
  const bool floats = (HEDDLE_DTYPE_BIT(x.dtype) & plugin::float_dtypes) != 0;
  text->function("bool holds(const Parameters& p, Index i)", floats ? "return (T)(p.x[i] << 1) != 0;" : "return p.x[i] != 0;");
  text->function("void put(const Parameters& p, Index i, bool holds, i64 place, i64 total)",
                 "if (holds) put_coordinates<F>(p, i, place, total);");
}

void NonZeroLaunches::parameters(const Operands& operands, const Scratch&, ParameterWriter& writer) const {
  const heddle_tensor& x = *operands.input(0);
  writer.address("", "i64", "y", Address::output, 0);
  writer.address("const ", "T", "x", Address::input, 0);
  const int64_t one = 1;
  write_walk(writer, x.rank > 0 ? x.dims : &one, std::max(x.rank, 1), wide_);
}

// ---------------------------------------------------------------- Compress

CompressLaunches::Numbers CompressLaunches::look(const Operands& operands) const {
  const heddle_tensor& x = *operands.input(0);
  const Dims dims = dims_of(x);
  const auto width = static_cast<int64_t>(plugin::byte_width(x.dtype));
  if (x.element_count == 0) return {};
  if (flat) return {x.element_count, width / unit_, positions(operands) * (width / unit_)};
  int at = 0;
  operators::normalize_axis(axis, dims.rank, &at);
  const int64_t row = dims.count(at + 1, dims.rank) * width / unit_;
  return {dims[at], row, dims.count(0, at) * positions(operands) * row};
}

void CompressLaunches::describe(const Operands& operands, KernelText* text) {
  const heddle_tensor& x = *operands.input(0);
  unit_ = 1;
  unit_ = wide_ ? static_cast<int64_t>(plugin::byte_width(x.dtype)) : common_unit(widest_unit, std::max<int64_t>(look(operands).row, 1));
  text->type("T", unit_type(unit_));
  text->function("bool holds(const Parameters& p, Index i)", "return p.condition[i] != 0;");
  text->function("void put(const Parameters& p, Index i, bool holds, i64 place, i64)",
                 "p.places[i] = holds && place < p.planned ? (Index)place : ~(Index)0;");
}

void CompressLaunches::parameters(const Operands& operands, const Scratch& scratch, ParameterWriter& writer) const {
  const heddle_tensor& y = *operands.output(0);
  const Numbers n = look(operands);
  int at = 0;
  if (!flat) operators::normalize_axis(axis, y.rank, &at);
  writer.address("", "T", "y", Address::output, 0);
  writer.address("const ", "T", "x", Address::input, 0);
  writer.address("const ", "u8", "condition", Address::input, 1);
  writer.address("", "Index", "places", Address::scratch, 0, scratch.places);
  writer.number("planned", y.dims[at]);
  writer.number("whole", n.whole);
  writer.number("row", n.row);
  writer.number("row_divider", divider_of(n.row, wide_));
  writer.number("count_divider", divider_of(positions(operands), wide_));
  writer.number("units", n.units);
}

}  // namespace heddle::cuda
