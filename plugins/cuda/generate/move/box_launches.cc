#include "generate/move/box_launches.h"

#include <algorithm>

#include "generate/move/move_source.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/extent_rules.h"
#include "shared/movement/boxes.h"
#include "shared/movement/slices.h"

namespace heddle::cuda {
namespace {

using operators::Box;
using plugin::Status;

constexpr int64_t min_tiled = 8;  // minimal rows and columns for which a square pays

// Returns the largest unit whose bytes are neighbours on both sides.
int64_t unit_of(const Box& box) {
  const Box::Dimension& last = box.dims[box.rank - 1];
  if (last.source != box.width) return box.width;
  int64_t unit = common_unit(common_unit(widest_unit, last.extent * box.width), box.source_first);
  for (int d = 0; d + 1 < box.rank; ++d) unit = common_unit(unit, box.dims[d].source);
  return unit;
}

// Converts the box from bytes to units.
void count_units(Box* box, int64_t unit) {
  Box::Dimension& last = box->dims[box->rank - 1];
  if (unit > box->width) last = {last.extent * box->width / unit, unit, unit};
  if (last.extent == 1 && box->rank > 1) --box->rank;
  for (int d = 0; d < box->rank; ++d) {
    box->dims[d].source /= unit;
    box->dims[d].target /= unit;
  }
  box->width = 1;
}

// Returns the dimension whose neighbours are neighbours in the source, if those of the last one are not; -1 if there is none.
int row_dimension(const Box& box) {
  const Box::Dimension& last = box.dims[box.rank - 1];
  if (last.source == 1 || last.extent < min_tiled) return -1;
  for (int d = 0; d + 1 < box.rank; ++d)
    if (box.dims[d].source == 1 && box.dims[d].extent >= min_tiled) return d;
  return -1;
}

int64_t count_of(const Box& box) {
  int64_t count = 1;
  for (int d = 0; d < box.rank; ++d) count *= box.dims[d].extent;
  return count;
}

// Returns the side of a square: 32 units, or 64 where those would be short pieces of memory.
int64_t side_of(int64_t unit) {
  return unit <= 2 ? 64 : 32;
}

}  // namespace

Status BoxLaunches::look(const Operands& operands, Units* units) const {
  Box& b = units->box;
  HEDDLE_PLUGIN_CHECK(box(operands, &b));
  b.merge();
  units->unit = varies_ ? b.width : unit_of(b);
  units->first = b.source_first / units->unit;
  count_units(&b, units->unit);
  const int row = varies_ ? -1 : row_dimension(b);
  units->tiled = row >= 0;
  if (units->tiled) std::rotate(b.dims + row, b.dims + row + 1, b.dims + b.rank - 1);
  return {};
}

void BoxLaunches::parameters(const Units& units, ParameterWriter& writer, int64_t* blocks) const {
  const int outer = tiled_ ? rank_ - 2 : rank_, absent = rank_ - units.box.rank;
  // Dimensions that this box lacks come first, with extent 1.
  int64_t extents[Box::capacity], strides[Box::capacity], targets[Box::capacity];
  for (int d = 0; d < outer; ++d) {
    const Box::Dimension dimension = d < absent ? Box::Dimension{1, 0, 0} : units.box.dims[d - absent];
    extents[d] = dimension.extent;
    strides[d] = dimension.source;
    targets[d] = dimension.target;
  }
  writer.address("", "T", "y", Address::output, 0);
  writer.address("const ", "T", "x", Address::input, 0);
  writer.number("first", units.first);
  if (outer > 0) {
    write_walk(writer, extents, outer, wide_);
    writer.numbers("strides", strides, outer);
  }
  if (!tiled_) {
    const int64_t count = count_of(units.box);
    writer.number("count", count);
    *blocks = blocks_of(count, move_threads);
    return;
  }
  if (outer > 0) writer.numbers("targets", targets, outer);
  const Box::Dimension &rows = units.box.dims[units.box.rank - 2], &columns = units.box.dims[units.box.rank - 1];
  const int64_t row_tiles = blocks_of(rows.extent, side_of(unit_)), column_tiles = blocks_of(columns.extent, side_of(unit_));
  *blocks = row_tiles * column_tiles;
  for (int d = 0; d < outer; ++d) *blocks *= extents[d];
  writer.number("tiles", *blocks);
  writer.number("rows", rows.extent);
  writer.number("row_stride", rows.target);
  writer.number("row_tiles", row_tiles);
  writer.number("row_divider", divider_of(row_tiles, wide_));
  writer.number("columns", columns.extent);
  writer.number("column_stride", columns.source);
  writer.number("column_tiles", column_tiles);
  writer.number("column_divider", divider_of(column_tiles, wide_));
}

Status BoxLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  varies_ = varies;
  for (uint32_t i = 1; i < operands.input_count; ++i) varies_ = varies_ || !operands.is_constant(i);
  if (operands.writes_nothing() && !varies_) return {};
  wide_ = varies_ || is_wide(x.element_count) || is_wide(y.element_count);
  Units units;
  if (varies_) {
    unit_ = static_cast<int64_t>(plugin::byte_width(x.dtype));
    rank_ = std::max(1, max_dimensions(operands));
    tiled_ = false;
  } else {
    HEDDLE_PLUGIN_CHECK(look(operands, &units));
    unit_ = units.unit;
    tiled_ = units.tiled;
    rank_ = tiled_ ? std::max(units.box.rank, 3) : units.box.rank;
  }
  KernelText text("box", wide_);
  text.type("T", unit_type(unit_));
  text.constant("RANK", tiled_ ? rank_ - 2 : rank_);
  text.constant("SIDE", side_of(unit_));
  text.constant("THREADS", move_threads);
  int64_t blocks = 0;
  if (units.box.rank == 0) units.box.add(1, 1, 1);
  parameters(units, text.parameters, &blocks);
  if (tiled_)
    text.block_kernel("copy", "copy_tiles<F>", move_threads);
  else
    text.kernel("copy", "copy_box<F>");
  text.write({"block", "move"}, source);
  return {};
}

Status BoxLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  for (uint32_t i = 1; i < operands.input_count; ++i)
    if (!operands.is_known(i)) return {};
  Units units;
  HEDDLE_PLUGIN_CHECK(look(operands, &units));
  Launch& launch = plan->add(0, move_threads, 0);
  ParameterWriter writer(nullptr, &launch);
  parameters(units, writer, &launch.blocks);
  return {};
}

// ---------------------------------------------------------------- the operators

Status TransposeLaunches::box(const Operands& operands, Box* box) const {
  *box = operators::transposed_box(*operands.input(0), *operands.output(0), order.data());
  return {};
}

Status ReorderLaunches::box(const Operands& operands, Box* box) const {
  HEDDLE_PLUGIN_CHECK(operators::check_reorder_layout("the input", *operands.input(0)));
  HEDDLE_PLUGIN_CHECK(operators::check_reorder_layout("the output", *operands.output(0)));
  *box = operators::reordered_box(*operands.input(0), *operands.output(0));
  return {};
}

Status SliceLaunches::box(const Operands& operands, Box* box) const {
  HEDDLE_PLUGIN_CHECK(operators::check_slices(operands.inputs, operands.input_count, *operands.output(0)));
  return operators::sliced_box(operands.inputs, operands.input_count, *operands.output(0), box);
}

Status RepeatLaunches::box(const Operands& operands, Box* box) const {
  const heddle_tensor &x = *operands.input(0), &operand = *operands.input(1), &y = *operands.output(0);
  HEDDLE_PLUGIN_CHECK(operators::check_planned({{tile ? "repeats" : "shape", &operand}}, y, [&](operators::Extents* to) {
    return tile ? operators::tile_extents(operators::dims_of(x), operand, to)
                : operators::expand_extents(operators::dims_of(x), operand, to);
  }));
  *box = operators::repeated_box(x, y);
  return {};
}

Status BlocksLaunches::box(const Operands& operands, Box* box) const {
  *box = operators::blocks_box(*operands.input(0), *operands.output(0), to_space, block, channel_first);
  return {};
}

}  // namespace heddle::cuda
