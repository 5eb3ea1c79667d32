// Pad: more (or with negative pads, fewer) elements around a tensor: a constant, the edge, a reflection or a wrap-around.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/movement/pads.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/filling.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

Status infer_pad(InferContext& context) {
  PadMode mode;
  HEDDLE_PLUGIN_CHECK(parse_pad_mode(context.attributes, &mode));
  const Dims from = context.dims(0);
  const bool has_axes = context.has_input(pad_axes_port);
  if (context.dims(pads_port).rank != 1) return not_one_dimensional("pads", context.dims(pads_port));
  if (context.has_input(pad_value_port) && context.input(pad_value_port).element_count != 1)
    return invalid("constant_value has shape " + dims_text(context.dims(pad_value_port)) + ", expected a scalar");
  if (!context.known(pads_port) || (has_axes && !context.known(pad_axes_port))) return context.set_dynamic(0, from.rank), Status();
  Pads pads;
  Extents to;
  HEDDLE_PLUGIN_CHECK(pad_extents(from, context.input(pads_port), has_axes ? &context.input(pad_axes_port) : nullptr, mode, &pads, &to));
  context.set_dims(0, to.dims());
  return {};
}

// The rows of one tile. A row is a margin, a part of a row of the input, and a margin. W: as wide as an element.
template <class W>
class PaddedRows {
 public:
  PaddedRows(const PadPlan& plan, PadMode mode, W value, CancellationPoll& poll)
      : plan_(plan),
        axis_(plan.rank - 1),
        mode_(mode),
        row_bytes_(plan.out[plan.rank - 1] * plan.block),
        value_(value),
        elements_(plan.block / width),
        poll_(poll) {}

  void copy(const char* x, char* y, Tiling::Range range) {
    const int64_t out = plan_.out[axis_], before = plan_.before[axis_];
    const int64_t inside = std::clamp<int64_t>(before, 0, out), outside = std::clamp<int64_t>(before + plan_.in[axis_], inside, out);
    const Margin left = {0, inside, piece_at(0)}, right = {outside, out, piece_at(outside)};
    start(range.first);
    for (int64_t row = range.first, rows = 0; row < range.last && !poll_.stopped(); row += rows, advance(rows)) {
      char* const target = y + row * row_bytes_;
      rows = run_length(range.last - row);
      if (places_[axis_].is_constant) {
        fill(target, value_, out * elements_);
        continue;
      }
      const char* const source = x + places_[axis_].offset;
      copy_margins(left, source, target, rows);
      copy_inside(source + (inside - before) * plan_.block, target + inside * plan_.block, (outside - inside) * plan_.block, rows);
      copy_margins(right, source, target, rows);
    }
  }

 private:
  // Positions of a row that are read from `source` on, in steps of 1, 0 or -1; a source of -1 is the constant.
  struct Piece {
    int64_t source, step, count;
  };
  Piece piece_at(int64_t position) const {
    const int64_t at = position - plan_.before[axis_], extent = plan_.in[axis_], source = source_position(at, extent, mode_);
    if (mode_ == PadMode::constant || mode_ == PadMode::edge || extent == 1) return {source, 0, INT64_MAX};
    if (mode_ == PadMode::wrap) return {source, 1, extent - source};
    // Reflected rows alternate between ascending and descending ones, which share their ends.
    const bool ascends = source == 0 || (source < extent - 1 && source_position(at + 1, extent, mode_) > source);
    return ascends ? Piece{source, 1, extent - source} : Piece{source, -1, source + 1};
  }
  void fill(char* to, W value, int64_t count) { fill_elements(to, width, &value, count, poll_); }
  // The positions [first, last) of a row, the first of which are `piece`.
  struct Margin {
    int64_t first, last;
    Piece piece;
  };
  // The number of rows, at most `most`, that lie one after the other in the input, too.
  int64_t run_length(int64_t most) const {
    if (axis_ == 0 || places_[axis_].is_constant) return 1;
    const int64_t at = at_[axis_ - 1], from = at - plan_.before[axis_ - 1], in = plan_.in[axis_ - 1];
    if (from < 0 || from >= in) return 1;
    return std::min({most, in - from, plan_.out[axis_ - 1] - at, std::max<int64_t>(1, CancellationPoll::between / row_bytes_)});
  }
  int64_t source_row_bytes() const { return axis_ == 0 ? 0 : plan_.stride[axis_ - 1]; }
  void copy_inside(const char* source, char* target, int64_t bytes, int64_t rows) {
    if (rows == 1) return copy_cancellable(target, source, bytes, poll_);
    if (bytes == 0 || poll_.stops(rows * bytes / 8)) return;
    isa_moves().copy[0]({source, target, {1, 0, 0}, {rows, source_row_bytes(), row_bytes_}, {bytes, 1, 1}});
  }
  void copy_margins(const Margin& margin, const char* source, char* target, int64_t rows) {
    const int64_t count = margin.last - margin.first;
    const Piece& piece = margin.piece;
    if (count == 0) return;
    if (elements_ > 1 || piece.count < count || count > 8 || poll_.stops(rows * count)) {
      for (int64_t r = 0; r < rows; ++r) copy_margin(margin, source + r * source_row_bytes(), target + r * row_bytes_);
      return;
    }
    // Short ones, which are the rule.
    const W* from = piece.source < 0 ? &value_ : reinterpret_cast<const W*>(source) + piece.source;
    const int64_t source_row = piece.source < 0 ? 0 : source_row_bytes() / width;
    W* to = reinterpret_cast<W*>(target) + margin.first;
    for (int64_t r = 0; r < rows; ++r, from += source_row, to += row_bytes_ / width)
      for (int64_t i = 0; i < count; ++i) to[i] = from[i * piece.step];
  }
  void copy_margin(const Margin& margin, const char* source, char* target) {
    Piece piece = margin.piece;
    for (int64_t i = margin.first; i < margin.last && !poll_.stopped();) {
      const int64_t n = std::min(piece.count, margin.last - i);
      copy_piece(source + piece.source * plan_.block, target + i * plan_.block, piece, n);
      i += n;
      if (i < margin.last) piece = piece_at(i);
    }
  }
  void copy_piece(const char* from, char* to, const Piece& piece, int64_t count) {
    if (piece.source < 0) return fill(to, value_, count * elements_);
    if (piece.step == 1) return copy_cancellable(to, from, count * plan_.block, poll_);
    if (elements_ > 1) {
      for (int64_t i = 0; i < count && !poll_.stopped(); ++i)
        copy_cancellable(to + i * plan_.block, from + i * piece.step * plan_.block, plan_.block, poll_);
      return;
    }
    const W* const source = reinterpret_cast<const W*>(from);
    if (piece.step == 0) return fill(to, *source, count);
    for (int64_t i = 0; i < count && !poll_.stops(1); ++i) reinterpret_cast<W*>(to)[i] = source[-i];
  }

  // The row of the input, as an odometer: places_[i] is found from the positions on the axes before i.
  void start(int64_t row) {
    for (int i = axis_ - 1; i >= 0; --i) {
      at_[i] = row % plan_.out[i];
      row /= plan_.out[i];
    }
    refresh(0);
  }
  void advance(int64_t rows) {
    if (axis_ == 0) return;
    int i = axis_ - 1;
    at_[i] += rows;
    while (i > 0 && at_[i] == plan_.out[i]) {
      at_[i] = 0;
      ++at_[--i];
    }
    refresh(i);
  }
  void refresh(int first) {
    for (int i = first; i < axis_; ++i) {
      const int64_t from = source_position(at_[i] - plan_.before[i], plan_.in[i], mode_);
      places_[i + 1] = {places_[i].offset + from * plan_.stride[i], places_[i].is_constant || from < 0};
    }
  }

  static constexpr auto width = static_cast<int64_t>(sizeof(W));
  struct Place {
    int64_t offset;
    bool is_constant;
  };
  const PadPlan& plan_;
  int axis_;
  PadMode mode_;
  int64_t row_bytes_;
  W value_;
  int64_t elements_;  // of a block
  CancellationPoll& poll_;
  int64_t at_[HEDDLE_MAX_RANK] = {};
  Place places_[HEDDLE_MAX_RANK + 1] = {};
};

class Pad {
 public:
  Status create(const CreateContext& context) { return parse_pad_mode(context.attributes, &mode_); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    const auto operand = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    Pads pads;
    HEDDLE_PLUGIN_CHECK(check_planned({{"pads", operand(pads_port)}, {"axes", operand(pad_axes_port)}}, y, [&](Extents* to) {
      return pad_extents(dims_of(x), *operand(pads_port), operand(pad_axes_port), mode_, &pads, to);
    }));
    if (y.element_count == 0) return {};
    uint64_t constant = 0;
    const size_t width = byte_width(x.dtype);
    if (const heddle_tensor* value = operand(pad_value_port)) std::memcpy(&constant, value->data, width);
    const PadPlan plan = pad_plan(x, y, pads);
    CancellationPoll poll(context);
    with_width(width, [&](auto tag) {
      using W = typename decltype(tag)::type;
      W value;
      std::memcpy(&value, &constant, sizeof(W));
      PaddedRows<W>(plan, mode_, value, poll)
          .copy(static_cast<const char*>(x.data), static_cast<char*>(y.data), tiling_.range(plan.rows, begin, end));
    });
    return poll.status();
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  PadMode mode_ = PadMode::constant;
  Tiling tiling_;
};

// The gradient of constant pads is Pad with negated pads; that of other modes sums all copies. The constant's gradient is the sum of dY
// over the padding.
Status pad_gradient(GradientContext& g) {
  const bool is_constant = g.attributes().s("mode") == "constant";
  const GradientAttribute mode = g.same("mode");
  const GradientValue pads = g.x(pads_port), axes = g.x(pad_axes_port), dy = g.dy(0);
  if (g.wants(0))
    g.give(0, is_constant ? g.emit("Pad", {dy, g.emit("Neg", {pads}), {}, axes})
                          : g.emit("PadGradient", {dy, shape_of(g, g.x(0)), pads, axes}, {mode}, "heddle"));
  if (!g.wants(pad_value_port)) return {};
  const GradientValue value = g.x(pad_value_port);
  if (!is_constant) return g.give(pad_value_port, zeros_like(g, value)), Status();
  constexpr float one = 1;
  const GradientValue outside =
      g.emit("Pad", {zeros_like(g, g.x(0)), pads, g.emit("CastLike", {g.constant(HEDDLE_F32, {}, &one), value}), axes});
  g.give(pad_value_port, reshape(g, g.emit("ReduceSum", {pointwise(g, "select(eq(x0, 0), 0, x1)", {outside, dy})}), shape_of(g, value)));
  return {};
}

}  // namespace

void add_pad(Builder& plugin) {
  plugin.add(
      Op("Pad", "", 19)
          .doc("Adds elements before and after axes, as `mode` says: one value (constant), the nearest element (edge), a reflection "
               "without the edge (reflect), or what wraps around (wrap). Negative pads crop.")
          .shapes("output has the dims of data plus the pads of each axis")
          .in("data")
          .shape_operand("pads")
          .optional("constant_value")
          .shape_operand("axes", index_dtypes, true)
          .out("output")
          .attribute("mode", "constant")
          .infer(infer_pad)
          .gradient<pad_gradient>()
          .cpu<Pad>()
          .example("f32[2,2] = 1 2 3 4, i64[4] = 0 1 1 0 -> f32[3,3] = 0 1 2 0 3 4 0 0 0", "ONNX Runtime")
          .example("f32[3] = 1 2 3, i64[2] = 2 1, f32[] = 7; mode=\"constant\" -> f32[6] = 7 7 1 2 3 7", "ONNX Runtime")
          .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 1, -, i64[1] = -1; mode=\"reflect\" -> f32[2,5] = 2 1 2 3 2 5 4 5 6 5", "ONNX Runtime")
          .example("f32[3] = 1 2 3, i64[2] = 2 1; mode=\"edge\" -> f32[6] = 1 1 1 2 3 3", "ONNX Runtime")
          .example("f32[3] = 1 2 3, i64[2] = 2 1; mode=\"wrap\" -> f32[6] = 2 3 1 2 3 1", "ONNX Runtime")
          .example("i32[2,2] = 1 0 0 1, i64[2] = 1 0, i32[] = 3, i32[1] = 1 -> i32[2,3] = 3 1 0 3 0 1", "ONNX Runtime")
          .example("f32[4] = 1 2 3 4, i64[2] = -1 -> f32[2] = 2 3", "ONNX Runtime"));
}

}  // namespace heddle::cpu
