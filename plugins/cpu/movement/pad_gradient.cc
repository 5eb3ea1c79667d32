// heddle::PadGradient: sums dY over all copies that Pad made of each element. The gradient of Pad.
//
// One row of the output at a time: every row of dY that is a copy of it is added to it, then the copies in the margins of that row. Tiles
// are ranges of rows.
#include <algorithm>
#include <utility>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/extent_rules.h"
#include "shared/movement/pads.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/float_sums.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t unpadded_shape_port = 1, unpadded_pads_port = 2, unpadded_axes_port = 3;

// Errors: Pad of the output does not give dY's shape.
Status check_padded(Dims padded, Dims from, const heddle_tensor& pads_operand, const heddle_tensor* axes, PadMode mode, Pads* pads) {
  Extents to;
  HEDDLE_PLUGIN_CHECK(pad_extents(from, pads_operand, axes, mode, pads, &to));
  if (!std::equal(padded.begin(), padded.end(), to.dims().begin(), to.dims().end()))
    return invalid("dY has shape " + dims_text(padded) + ", the padded tensor " + dims_text(to.dims()));
  return {};
}

Status infer_pad_gradient(InferContext& context) {
  PadMode mode;
  HEDDLE_PLUGIN_CHECK(parse_pad_mode(context.attributes, &mode));
  const Dims padded = context.dims(0);
  const bool has_axes = context.has_input(unpadded_axes_port);
  if (context.dims(unpadded_shape_port).rank != 1 || context.dims(unpadded_shape_port)[0] != padded.rank)
    return invalid("shape has shape " + dims_text(context.dims(unpadded_shape_port)) + ", expected [" + std::to_string(padded.rank) + "]");
  if (context.dims(unpadded_pads_port).rank != 1) return not_one_dimensional("pads", context.dims(unpadded_pads_port));
  if (!context.known(unpadded_shape_port)) return context.set_dynamic(0, padded.rank), Status();
  Extents to;
  HEDDLE_PLUGIN_CHECK(constant_extents(context.input(unpadded_shape_port), &to));
  Pads pads;
  if (context.known(unpadded_pads_port) && (!has_axes || context.known(unpadded_axes_port)))
    HEDDLE_PLUGIN_CHECK(check_padded(padded, to.dims(), context.input(unpadded_pads_port),
                                     has_axes ? &context.input(unpadded_axes_port) : nullptr, mode, &pads));
  context.set_dims(0, to.dims());
  return {};
}

int64_t modulo(int64_t a, int64_t period) {
  const int64_t r = a % period;
  return r < 0 ? r + period : r;
}

// A padded axis of `in` positions.
struct PaddedAxis {
  int64_t in = 1, out = 1, before = 0;
  PadMode mode = PadMode::constant;

  // Calls f(position in dY) for each copy of position `at`: first the position itself, and repetitions in the same direction.
  template <class F>
  void each_copy(int64_t at, F&& f) const {
    const auto every = [&](int64_t first, int64_t last, int64_t step) {
      for (int64_t q = first; q < last; q += step) f(q);
    };
    const int64_t itself = at + before;
    switch (mode) {
      case PadMode::constant:
        return every(itself < 0 ? out : itself, std::min(itself + 1, out), 1);
      case PadMode::edge:
        every(itself < 0 ? out : itself, std::min(itself + 1, out), 1);
        if (at == 0) every(0, std::min(before, out), 1);
        if (at == in - 1) every(std::max<int64_t>(before + in, 0), out, 1);
        return;
      case PadMode::wrap:
        return every(modulo(itself, in), out, in);
      case PadMode::reflect: {
        if (in == 1) return every(0, out, 1);
        const int64_t period = 2 * (in - 1);
        every(modulo(itself, period), out, period);
        if (at != 0 && at != in - 1) every(modulo(before - at, period), out, period);
        return;
      }
    }
  }
};

struct GradientPlan {
  PaddedAxis axes[HEDDLE_MAX_RANK];
  int64_t stride[HEDDLE_MAX_RANK];  // of dY, in elements
  int rank = 0;                     // the last is the column
  int64_t block = 1, rows = 1;      // trailing axes without pads are one block of elements
  GradientPlan(const heddle_tensor& padded, const heddle_tensor& y, const Pads& pads, PadMode mode) : rank(y.rank) {
    for (int i = 0; i < rank; ++i) axes[i] = {y.dims[i], padded.dims[i], pads.before[i], mode};
    while (rank > 1 && pads.before[rank - 1] == 0 && axes[rank - 1].in == axes[rank - 1].out) block *= axes[--rank].in;
    rank = std::max(rank, 1);
    int64_t elements = block;
    for (int i = rank - 1; i >= 0; --i) {
      stride[i] = elements;
      elements *= axes[i].out;
      if (i + 1 < rank) rows *= axes[i].in;
    }
  }
  const PaddedAxis& column() const { return axes[rank - 1]; }
};

template <class T>
void add_block(FloatSum<T>* sums, const T* from, int64_t count) {
  for (int64_t i = 0; i < count; ++i) sums[i] += static_cast<FloatSum<T>>(to_arithmetic(from[i]));
}

// Adds one row of dY to the sums.
template <class T>
void add_row(const GradientPlan& plan, const T* row, FloatSum<T>* sums, CancellationPoll& poll) {
  const PaddedAxis& column = plan.column();
  if (poll.stops(column.out * plan.block)) return;
  const int64_t inside = std::clamp<int64_t>(column.before, 0, column.out);
  const int64_t outside = std::clamp<int64_t>(column.before + column.in, inside, column.out);
  add_block<T>(sums + (inside - column.before) * plan.block, row + inside * plan.block, (outside - inside) * plan.block);
  for (const auto& [first, last] : {std::pair{int64_t{0}, inside}, {outside, column.out}})
    for (int64_t q = first; q < last; ++q) {
      const int64_t at = source_position(q - column.before, column.in, column.mode);
      if (at >= 0) add_block<T>(sums + at * plan.block, row + q * plan.block, plan.block);
    }
}

template <class T>
void add_rows(const GradientPlan& plan, const T* dy, const int64_t* at, int axis, FloatSum<T>* sums, CancellationPoll& poll) {
  if (axis == plan.rank - 1) return add_row<T>(plan, dy, sums, poll);
  plan.axes[axis].each_copy(at[axis], [&](int64_t q) { add_rows<T>(plan, dy + q * plan.stride[axis], at, axis + 1, sums, poll); });
}

class PadGradient {
 public:
  Status create(const CreateContext& context) { return parse_pad_mode(context.attributes, &mode_); }
  Status prepare(PrepareContext& context) {
    const heddle_tensor& y = *context.output(0);
    varies_ = varies(context, {unpadded_shape_port});
    const bool narrow = y.dtype == HEDDLE_F16 || y.dtype == HEDDLE_BF16;
    // A row is the whole output where the first axis is padded.
    context.set_scratch(0, narrow ? static_cast<uint64_t>(y.element_count) * sizeof(float) : 0);
    tiling_.plan(context, static_cast<int64_t>(context.input(0)->byte_size + y.byte_size), 2.0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &padded = *context.inputs[0], &y = *context.outputs[0];
    if (varies_)
      HEDDLE_PLUGIN_CHECK(check_planned({{"shape", context.inputs[unpadded_shape_port]}}, y,
                                        [&](Extents* to) { return constant_extents(*context.inputs[unpadded_shape_port], to); }));
    const heddle_tensor* axes = unpadded_axes_port < context.input_count ? context.inputs[unpadded_axes_port] : nullptr;
    Pads pads;
    HEDDLE_PLUGIN_CHECK(check_padded(dims_of(padded), dims_of(y), *context.inputs[unpadded_pads_port], axes, mode_, &pads));
    if (y.element_count == 0) return {};
    const GradientPlan plan(padded, y, pads, mode_);
    const Tiling::Range rows = tiling_.range(plan.rows, begin, end);
    CancellationPoll poll(context);
    const auto add = [&](auto tag) {
      using T = typename decltype(tag)::type;
      add_up(plan, static_cast<const T*>(padded.data), static_cast<T*>(y.data), context, rows, poll);
    };
    with_float(y.dtype, add);
    return poll.status();
  }

 private:
  template <class T>
  static void add_up(const GradientPlan& plan, const T* dy, T* dx, const RunContext& context, Tiling::Range rows, CancellationPoll& poll) {
    const int64_t width = plan.column().in * plan.block;
    for (int64_t row = rows.first; row < rows.last && !poll.stopped(); ++row) {
      int64_t at[HEDDLE_MAX_RANK], rest = row;
      for (int i = plan.rank - 2; i >= 0; --i) {
        at[i] = rest % plan.axes[i].in;
        rest /= plan.axes[i].in;
      }
      T* to = dx + row * width;
      if constexpr (std::is_same_v<T, FloatSum<T>>) {
        fill_cancellable(to, width, T(0), poll);
        add_rows<T>(plan, dy, at, 0, to, poll);
      } else {
        auto* sums = thread_scratch<FloatSum<T>>(context);
        fill_cancellable(sums, width, FloatSum<T>(0), poll);
        add_rows<T>(plan, dy, at, 0, sums, poll);
        for (int64_t i = 0; i < width; ++i) to[i] = from_arithmetic<T>(sums[i]);
      }
    }
  }
  PadMode mode_ = PadMode::constant;
  bool varies_ = true;
  Tiling tiling_;
};

Status pad_gradient_gradient(GradientContext& g) {
  g.give(0, g.emit("Pad", {g.dy(0), g.x(unpadded_pads_port), {}, g.x(unpadded_axes_port)}, {g.same("mode")}));
  return {};
}

}  // namespace

void add_pad_gradient(Builder& plugin) {
  plugin.add(
      Op("PadGradient", "heddle")
          .doc("Adds up what Pad made copies of, in its modes edge, reflect and wrap. It is the gradient of Pad in these; in mode constant "
               "that is Pad itself, with negative pads.")
          .shapes("dX has the dims that shape holds")
          .in("dY", float_dtypes)
          .shape_operand("shape")
          .in("pads", dtypes<int64_t>(), nullptr)
          .on_host()
          .optional("axes", index_dtypes, nullptr)
          .on_host()
          .out("dX", {}, float_dtypes)
          .attribute("mode", "constant")
          .infer(infer_pad_gradient)
          .gradient<pad_gradient_gradient>()
          .cpu<PadGradient>()
          .example("f32[6] = 1 2 3 4 5 6, i64[1] = 3, i64[2] = 2 1; mode=\"edge\" -> f32[3] = 6 4 11", "by hand")
          .example("f32[6] = 1 2 3 4 5 6, i64[1] = 3, i64[2] = 2 1; mode=\"reflect\" -> f32[3] = 3 12 6", "by hand")
          .example("f32[6] = 1 2 3 4 5 6, i64[1] = 3, i64[2] = 2 1; mode=\"wrap\" -> f32[3] = 9 5 7", "by hand")
          .example("f32[2,3] = 1 2 3 4 5 6, i64[2] = 2 4, i64[2] = 0 -1, i32[1] = 1; mode=\"constant\" -> f32[2,4] = 1 2 3 0 4 5 6 0",
                   "by hand"));
}

}  // namespace heddle::cpu
