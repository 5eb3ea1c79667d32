#include "generate/image/resize_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/move/move_source.h"
#include "shared/computed_extents.h"

namespace heddle::cuda {

using operators::ResizeAxis;
using plugin::Status;

namespace {

constexpr int resize_threads = 256;
constexpr uint32_t tables_kernel = 0, weighted_kernel = 1;

bool is_float(heddle_dtype dtype) {
  return HEDDLE_DTYPE_BIT(dtype) & plugin::float_dtypes;
}
// Returns double for f64 and for integers, whose rounding shows every error, else float.
const char* sum_type(heddle_dtype dtype) {
  return is_float(dtype) && dtype != HEDDLE_F64 ? "float" : "double";
}

// The smallest and the largest number of an integer type.
struct Limits {
  const char *least, *most;
};
Limits limits_of(heddle_dtype dtype) {
  switch (dtype) {
    case HEDDLE_I8:
      return {"-128", "127"};
    case HEDDLE_I16:
      return {"-32768", "32767"};
    case HEDDLE_I32:
      return {"-2147483647 - 1", "2147483647"};
    case HEDDLE_I64:
      return {"-9223372036854775807ll - 1", "9223372036854775807ll"};
    case HEDDLE_U16:
      return {"0", "65535"};
    case HEDDLE_U32:
      return {"0", "4294967295u"};
    case HEDDLE_U64:
      return {"0", "18446744073709551615ull"};
    default:
      return {"0", "255"};
  }
}

// Converts to integers by rounding to the nearest one, ties to even; beyond the type's range to its limit.
std::string stored_text(heddle_dtype dtype) {
  const auto stored = [](const std::string& number) { return "return Stored<T>::of(" + number + ");"; };
  if (is_float(dtype)) return stored("value");
  const Limits limits = limits_of(dtype);
  return "if (value != value) " + stored("0") + " if (!(value > (C)(" + limits.least + "))) " + stored(limits.least) +
         " if (value >= (C)(" + limits.most + ")) " + stored(limits.most) + " " + stored("rint(value)");
}

}  // namespace

// ---------------------------------------------------------------- axes

void ResizeLaunches::Walk::put_in_front(const ResizeAxis& axis, int64_t tap_count) {
  const auto put = [&](auto* values, auto value) {
    std::copy_backward(values, values + rank, values + rank + 1);
    values[0] = value;
  };
  put(input, axis.input);
  put(output, axis.output);
  put(taps, tap_count);
  put(roi_entries, int64_t{axis.roi_entry});
  put(scale, axis.scale);
  ++rank;
}

// Neighbouring axes that keep their elements are walked as one axis.
void ResizeLaunches::walk_axes(const ResizeAxis* axes, const heddle_tensor& x, Walk* walk) const {
  for (int i = x.rank - 1; i >= 0; --i) {
    const ResizeAxis& axis = axes[x.layout.rank == x.rank ? x.layout.order[i] : i];
    const bool moved = axis.scale != 1 || axis.input != axis.output || axis.roi_entry >= 0;
    walk->roi_axes += axis.roi_entry >= 0 ? 1 : 0;
    if (moved) {
      walk->put_in_front(axis, operators::tap_count(node.options, axis));
    } else if (walk->rank == 0) {
      walk->block *= axis.input;
    } else if (walk->taps[0] == 0) {
      walk->input[0] *= axis.input;
      walk->output[0] *= axis.output;
    } else {
      walk->put_in_front(axis, 0);
    }
  }
  walk->fill_up(varies_ ? rank_ : 1);
  int64_t stride = walk->block;
  for (int i = walk->rank - 1; i >= 0; --i) {
    walk->stride[i] = stride;
    stride *= walk->input[i];
  }
  for (int i = 0; i < walk->rank; ++i) {
    walk->entries[i] = walk->weights;
    walk->weights += walk->taps[i] * walk->output[i];
    walk->places += walk->taps[i] > 0 ? walk->output[i] : 0;
  }
}

// The content of the roi is read by the kernels only.
Status ResizeLaunches::look(const Operands& operands, Walk* walk) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  operators::ResizeOperands given = operators::resize_operands(operands.inputs, operands.input_count);
  heddle_tensor roi = {};
  if (given.roi) {
    roi = *given.roi;
    roi.data = nullptr;
    given.roi = &roi;
  }
  ResizeAxis axes[HEDDLE_MAX_RANK];
  const auto resolve = [&](operators::Extents* to) -> Status {
    HEDDLE_PLUGIN_CHECK(operators::resolve_axes(node, operators::dims_of(x), given, axes));
    for (int i = 0; i < x.rank; ++i) to->push(axes[i].output);
    return {};
  };
  if (given.sizes)
    HEDDLE_PLUGIN_CHECK(operators::check_planned({{"sizes", given.sizes}}, y, resolve));
  else
    HEDDLE_PLUGIN_CHECK(operators::check_planned({{"scales", given.scales}}, y, resolve));
  if (y.element_count > 0) walk_axes(axes, x, walk);
  return {};
}

// ---------------------------------------------------------------- source

uint64_t ResizeLaunches::take_tables(int64_t weights, LaunchPlan* plan, uint64_t* positions) const {
  const uint64_t width = std::string(sum_type(dtype_)) == "float" ? sizeof(float) : sizeof(double);
  const uint64_t at = plan->take(static_cast<uint64_t>(weights) * width);
  *positions = plan->take(static_cast<uint64_t>(weights) * sizeof(int32_t));
  return at;
}

void ResizeLaunches::parameters(const Walk& walk, int64_t count, uint64_t weights, uint64_t positions, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  if (crops()) writer.address("const ", stored_type(roi_dtype_), "roi", Address::input, 1);
  if (!is_nearest()) {
    writer.address("", sum_type(dtype_), "weights", Address::scratch, 0, weights);
    writer.address("", "i32", "positions", Address::scratch, 0, positions);
  }
  writer.number("count", count);
  writer.number("places", walk.places);
  writer.number("roi_axes", walk.roi_axes);
  writer.number("block", walk.block);
  writer.number("block_divider", divider_of(walk.block, wide_));
  writer.number("coefficient", node.options.cubic_coefficient);
  writer.number("outside", dtype_ == HEDDLE_BOOL ? double(node.options.extrapolation != 0) : node.options.extrapolation);
  int64_t dividers[HEDDLE_MAX_RANK];
  for (int i = 0; i < walk.rank; ++i) dividers[i] = divider_of(walk.output[i], wide_);
  writer.numbers("input", walk.input, walk.rank);
  writer.numbers("output", walk.output, walk.rank);
  writer.numbers("dividers", dividers, walk.rank);
  writer.numbers("stride", walk.stride, walk.rank);
  writer.numbers("taps", walk.taps, walk.rank);
  writer.numbers("entries", walk.entries, walk.rank);
  writer.numbers("roi_entries", walk.roi_entries, walk.rank);
  writer.numbers("scale", walk.scale, walk.rank);
}

void ResizeLaunches::members(const Walk& walk, KernelText* text) const {
  const operators::ResizeOptions& options = node.options;
  text->type("T", stored_type(dtype_));
  text->type("C", sum_type(dtype_));
  text->constant("RANK", walk.rank);
  text->constant("INTERPOLATION", static_cast<int>(options.interpolation));
  text->constant("COORDINATES", static_cast<int>(options.coordinates));
  text->constant("ROUNDING", static_cast<int>(options.rounding));
  text->constant("ANTIALIAS", options.antialias);
  text->constant("EXCLUDES", options.exclude_outside);
  text->function("T stored(C value)", stored_text(dtype_));
  if (crops()) text->function("double roi(const Parameters& p, i64 entry)", "return To<double>::from(p.roi[entry]);");
  // Where nothing varies the tap counts are constants, except for kernels widened by the scale of their axis.
  std::string taps = "p.taps[axis]";
  if (!varies_ && !options.antialias) {
    taps = "0";
    for (int i = 0; i < walk.rank; ++i)
      if (walk.taps[i] > 0) taps = "axis == " + std::to_string(i) + " ? " + std::to_string(walk.taps[i]) + " : " + taps;
  }
  text->function("i64 taps(const Parameters& p, int axis)", "return " + taps + ";");
}

Status ResizeLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  varies_ = varies || !operands.is_constant(2) || !operands.is_constant(3);
  if (operands.writes_nothing() && !varies_) return {};
  dtype_ = x.dtype;
  roi_dtype_ = operands.input(1) ? operands.input(1)->dtype : HEDDLE_DTYPE_NONE;
  if ((x.layout.rank != 0) != (y.layout.rank != 0)) return plugin::unsupported("Resize wants input and output in one layout");
  if (crops() && !operands.input(1)) return plugin::invalid("tf_crop_and_resize needs a roi");
  rank_ = std::max(x.rank, 1);
  wide_ = varies_ || is_wide(y.element_count);
  Walk walk;
  if (varies_)
    walk.fill_up(rank_);
  else
    HEDDLE_PLUGIN_CHECK(look(operands, &walk));
  source->contract = false;  // to get the host's positions
  KernelText text("resize", wide_);
  members(walk, &text);
  parameters(walk, 0, 0, 0, text.parameters);
  picked_ = 0;
  if (!is_nearest() && (varies_ || walk.places > 0)) {
    text.kernel("tables", "resize_tables<F>");
    text.kernel("weighted", "resize_weighted<F>");
    picked_ = 2;
  }
  if (is_nearest() || varies_ || walk.places == 0) text.kernel("picked", "resize_picked<F>");
  text.write({"move", "cubic", "resize"}, source);
  return {};
}

Status ResizeLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  if (operands.writes_nothing() && !varies_) return {};
  uint64_t weights = 0, positions = 0;
  if (!operands.is_known(2) || !operands.is_known(3)) {
    if (!is_nearest()) take_tables(operators::table_entries(node, operators::dims_of(x), operators::dims_of(y)), plan, &positions);
    return {};
  }
  Walk walk;
  HEDDLE_PLUGIN_CHECK(look(operands, &walk));
  if (y.element_count == 0) return {};
  const bool sums = !is_nearest() && walk.places > 0;
  if (sums) weights = take_tables(walk.weights, plan, &positions);
  const auto add = [&](uint32_t kernel, int64_t work) {
    ParameterWriter writer(nullptr, &plan->add(kernel, resize_threads, blocks_of(work, resize_threads)));
    parameters(walk, y.element_count, weights, positions, writer);
  };
  if (sums) add(tables_kernel, walk.places);
  add(sums ? weighted_kernel : picked_, y.element_count);
  return {};
}

}  // namespace heddle::cuda
