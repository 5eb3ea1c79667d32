#include "generate/image/grid_sample_launches.h"

#include <algorithm>

#include "generate/dtype_names.h"
#include "generate/kernel_text.h"
#include "shared/dims.h"

namespace heddle::cuda {

using operators::Dims;
using operators::dims_of;
using plugin::Status;

namespace {

constexpr int sample_threads = 128;
// The number of channels that one thread computes, as long as there are that many threads.
constexpr int64_t max_channels = 8, enough_units = 1 << 17;

}  // namespace

void GridSampleLaunches::parameters(const Numbers& numbers, ParameterWriter& writer) const {
  writer.address("", stored_type(dtype_), "y", Address::output, 0);
  writer.address("const ", stored_type(dtype_), "x", Address::input, 0);
  writer.address("const ", stored_type(grid_dtype_), "grid", Address::input, 1);
  writer.number("units", numbers.units);
  writer.number("channels", numbers.channels);
  writer.number("at_once", numbers.at_once);
  writer.number("groups", numbers.groups);
  writer.number("read", numbers.read);
  writer.number("written", numbers.written);
  writer.numbers("input", numbers.input, axes_);
}

Status GridSampleLaunches::choose(const Operands& operands, bool varies, KernelSource* source) {
  const heddle_tensor &x = *operands.input(0), &y = *operands.output(0);
  if (operands.writes_nothing() && !varies) return {};
  dtype_ = x.dtype;
  grid_dtype_ = operands.input(1)->dtype;
  axes_ = x.rank - 2;
  KernelText text("sample", varies || is_wide(y.element_count));
  text.type("T", stored_type(dtype_));
  text.type("C", compute_type(dtype_));
  text.constant("AXES", axes_);
  text.constant("INTERPOLATION", static_cast<int64_t>(options.interpolation));
  text.constant("PADDING", static_cast<int64_t>(options.padding));
  text.constant("ALIGNS", options.align_corners);
  parameters({}, text.parameters);
  text.kernel("grid", "grid_sample<F>");
  source->contract = false;  // to get the host's positions
  text.write({"cubic", "grid_sample"}, source);
  return {};
}

Status GridSampleLaunches::plan(const Operands& operands, LaunchPlan* plan) const {
  if (operands.writes_nothing()) return {};
  const Dims from = dims_of(*operands.input(0)), to = dims_of(*operands.output(0));
  Numbers n;
  n.channels = from[1];
  n.read = from.count(2, from.rank);
  n.written = to.count(2, to.rank);
  n.at_once = std::min(n.channels, max_channels);
  while (n.at_once > 1 && from[0] * n.written * blocks_of(n.channels, n.at_once) < enough_units) n.at_once /= 2;
  n.groups = blocks_of(n.channels, n.at_once);
  n.units = from[0] * n.groups * n.written;
  std::copy(from.begin() + 2, from.end(), n.input);
  ParameterWriter writer(nullptr, &plan->add(0, sample_threads, blocks_of(n.units, sample_threads)));
  parameters(n, writer);
  return {};
}

}  // namespace heddle::cuda
