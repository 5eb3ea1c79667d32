// Pad: more (or with negative pads, fewer) elements around a tensor: a constant, the edge, a reflection or a wrap-around.
#include <algorithm>
#include <cstring>

#include "families.h"
#include "shared/axes.h"
#include "shared/computed_extents.h"
#include "shared/dense_layouts.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr uint32_t pads_port = 1, value_port = 2, axes_port = 3;
enum class Mode : uint8_t { constant, edge, reflect, wrap };

Status parse_mode(const Attributes& attributes, Mode* mode) {
  const std::string text = attributes.s("mode");
  if (text == "constant")
    *mode = Mode::constant;
  else if (text == "edge")
    *mode = Mode::edge;
  else if (text == "reflect")
    *mode = Mode::reflect;
  else if (text == "wrap")
    *mode = Mode::wrap;
  else
    return invalid("mode is \"" + text + "\", expected constant, edge, reflect or wrap");
  return {};
}

constexpr int64_t most_pad = int64_t{1} << 60;  // of an axis: positions are sums of pads and extents

struct Pads {
  int64_t before[HEDDLE_MAX_RANK] = {}, after[HEDDLE_MAX_RANK] = {};
};

// The pads of every axis from the operands, whose content is readable.
Status read_pads(const heddle_tensor& pads, const heddle_tensor* axes, int rank, Pads* result) {
  const int64_t count = axes ? axes->element_count : rank;
  if (pads.element_count != 2 * count)
    return invalid("pads has " + std::to_string(pads.element_count) + " entries, expected two for each of " + std::to_string(count) +
                   " axes");
  uint32_t seen = 0;
  for (int64_t i = 0; i < count; ++i) {
    int axis = static_cast<int>(i);
    if (axes && !normalize_axis(integer_at(*axes, i), rank, &axis)) return axis_outside("axes", integer_at(*axes, i), rank);
    if (seen & (1u << axis)) return invalid("axes names axis " + std::to_string(axis) + " twice");
    seen |= 1u << axis;
    result->before[axis] = integer_at(pads, i);
    result->after[axis] = integer_at(pads, i + count);
    for (const int64_t pad : {result->before[axis], result->after[axis]})
      if (pad < -most_pad || pad > most_pad) return invalid("pads has " + std::to_string(pad) + " for axis " + std::to_string(axis));
  }
  return {};
}

Status pad_extents(Dims from, const heddle_tensor& operand, const heddle_tensor* axes, Mode mode, Pads* pads, Extents* to) {
  HEDDLE_PLUGIN_CHECK(read_pads(operand, axes, from.rank, pads));
  for (int i = 0; i < from.rank; ++i) {
    int64_t dim = from[i];
    if (__builtin_add_overflow(dim, pads->before[i], &dim) || __builtin_add_overflow(dim, pads->after[i], &dim) || dim < 0)
      return invalid("pads " + std::to_string(pads->before[i]) + " and " + std::to_string(pads->after[i]) + " do not fit axis " +
                     std::to_string(i) + " of " + dims_text(from));
    if (from[i] == 0 && dim > 0 && mode != Mode::constant)
      return invalid("axis " + std::to_string(i) + " is empty: only mode constant can pad it");
    to->push(dim);
  }
  return {};
}

Status infer_pad(InferContext& context) {
  Mode mode;
  HEDDLE_PLUGIN_CHECK(parse_mode(context.attributes, &mode));
  const Dims from = context.dims(0);
  const bool has_axes = context.has_input(axes_port);
  if (context.dims(pads_port).rank != 1) return not_one_dimensional("pads", context.dims(pads_port));
  if (context.has_input(value_port) && context.input(value_port).element_count != 1)
    return invalid("constant_value has shape " + dims_text(context.dims(value_port)) + ", expected a scalar");
  if (!context.known(pads_port) || (has_axes && !context.known(axes_port))) return context.set_dynamic(0, from.rank), Status();
  Pads pads;
  Extents to;
  HEDDLE_PLUGIN_CHECK(pad_extents(from, context.input(pads_port), has_axes ? &context.input(axes_port) : nullptr, mode, &pads, &to));
  context.set_dims(0, to.dims());
  return {};
}

// The input position that output position `at` - before shows; -1: the constant.
int64_t source_position(int64_t at, int64_t extent, Mode mode) {
  if (at >= 0 && at < extent) return at;
  switch (mode) {
    case Mode::constant:
      return -1;
    case Mode::edge:
      return at < 0 ? 0 : extent - 1;
    case Mode::wrap: {
      const int64_t r = at % extent;
      return r < 0 ? r + extent : r;
    }
    default: {
      if (extent == 1) return 0;
      const int64_t period = 2 * (extent - 1);
      int64_t r = at % period;
      if (r < 0) r += period;
      return r < extent ? r : period - r;
    }
  }
}

// Axes in physical order; trailing axes without pads are one block of bytes.
struct PadPlan {
  int rank = 0;
  int64_t in[HEDDLE_MAX_RANK], out[HEDDLE_MAX_RANK], before[HEDDLE_MAX_RANK], stride[HEDDLE_MAX_RANK];  // strides of the input in bytes
  int64_t block = 1;                                                                                    // bytes
  int64_t rows = 1;
};

PadPlan make_plan(const heddle_tensor& x, const heddle_tensor& y, const Pads& pads) {
  PadPlan plan;
  plan.rank = x.rank;
  for (int i = 0; i < x.rank; ++i) {
    const int axis = x.layout.rank == x.rank ? x.layout.order[i] : i;
    plan.in[i] = x.dims[axis];
    plan.out[i] = y.dims[axis];
    plan.before[i] = pads.before[axis];
  }
  plan.block = static_cast<int64_t>(byte_width(x.dtype));
  while (plan.rank > 1 && plan.before[plan.rank - 1] == 0 && plan.in[plan.rank - 1] == plan.out[plan.rank - 1])
    plan.block *= plan.in[--plan.rank];
  if (plan.rank == 0) {
    plan.in[0] = plan.out[0] = 1;
    plan.before[0] = 0;
    plan.rank = 1;
  }
  int64_t stride = plan.block;
  for (int i = plan.rank - 1; i >= 0; --i) {
    plan.stride[i] = stride;
    stride *= plan.in[i];
    if (i + 1 < plan.rank) plan.rows *= plan.out[i];
  }
  return plan;
}

class Pad {
 public:
  Status create(const CreateContext& context) { return parse_mode(context.attributes, &mode_); }
  Status prepare(PrepareContext& context) {
    tiling_.plan(context, 2 * static_cast<int64_t>(context.output(0)->byte_size));
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor &x = *context.inputs[0], &y = *context.outputs[0];
    const auto operand = [&](uint32_t port) { return port < context.input_count ? context.inputs[port] : nullptr; };
    Pads pads;
    HEDDLE_PLUGIN_CHECK(check_planned({{"pads", operand(pads_port)}, {"axes", operand(axes_port)}}, y, [&](Extents* to) {
      return pad_extents(dims_of(x), *operand(pads_port), operand(axes_port), mode_, &pads, to);
    }));
    if (y.element_count == 0) return {};
    uint64_t constant = 0;
    const size_t width = byte_width(x.dtype);
    if (const heddle_tensor* value = operand(value_port)) std::memcpy(&constant, value->data, width);
    const PadPlan plan = make_plan(x, y, pads);
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
  Mode mode_ = Mode::constant;
  Tiling tiling_;
};

}  // namespace

void add_pad(Builder& plugin) {
  plugin.add(
      Op("Pad", "", 19)
          .doc("elements before and after every axis: constant, edge, reflect or wrap; negative pads crop")
          .in("data")
          .shape_operand("pads")
          .optional("constant_value")
          .shape_operand("axes", index_dtypes, true)
          .out("output")
          .attribute("mode", "constant")
          .infer(infer_pad)
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
