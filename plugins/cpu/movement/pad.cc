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
      copy_rows<W>(plan, x.data, y.data, value, tiling_.range(plan.rows, begin, end), poll);
    });
    return poll.status();
  }
  static std::vector<heddle_format> formats(const CreateContext& context) { return uniform_formats(context, 1, 1); }

 private:
  template <class W>
  static void fill(char* to, int64_t bytes, W value, CancellationPoll& poll) {
    fill_cancellable(reinterpret_cast<W*>(to), bytes / static_cast<int64_t>(sizeof(W)), value, poll);
  }
  // The positions [first, last) of a row, one by one.
  template <class W>
  void copy_margin(const PadPlan& plan, const char* source, char* target, int64_t first, int64_t last, W value,
                   CancellationPoll& poll) const {
    const int axis = plan.rank - 1;
    for (int64_t i = first; i < last && !poll.stops(2); ++i) {
      const int64_t from = source_position(i - plan.before[axis], plan.in[axis], mode_);
      if (from < 0)
        fill(target + i * plan.block, plan.block, value, poll);
      else
        copy_cancellable(target + i * plan.block, source + from * plan.block, plan.block, poll);
    }
  }
  template <class W>
  void copy_rows(const PadPlan& plan, const void* x, void* y, W value, Tiling::Range range, CancellationPoll& poll) const {
    const int axis = plan.rank - 1;
    const int64_t row_bytes = plan.out[axis] * plan.block;
    const int64_t inside = std::clamp<int64_t>(plan.before[axis], 0, plan.out[axis]);
    const int64_t outside = std::clamp<int64_t>(plan.before[axis] + plan.in[axis], inside, plan.out[axis]);
    for (int64_t row = range.first; row < range.last && !poll.stopped(); ++row) {
      char* target = static_cast<char*>(y) + row * row_bytes;
      int64_t offset = 0, rest = row;
      bool outer_constant = false;
      for (int i = axis - 1; i >= 0; --i) {
        const int64_t from = source_position(rest % plan.out[i] - plan.before[i], plan.in[i], mode_);
        rest /= plan.out[i];
        outer_constant = outer_constant || from < 0;
        offset += from * plan.stride[i];
      }
      if (outer_constant) {
        fill(target, row_bytes, value, poll);
        continue;
      }
      const char* source = static_cast<const char*>(x) + offset;
      copy_margin(plan, source, target, 0, inside, value, poll);
      if (outside > inside)
        copy_cancellable(target + inside * plan.block, source + (inside - plan.before[axis]) * plan.block, (outside - inside) * plan.block,
                         poll);
      copy_margin(plan, source, target, outside, plan.out[axis], value, poll);
    }
  }
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
