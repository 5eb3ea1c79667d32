#include "shared/image/resize_node.h"

#include <algorithm>
#include <cmath>

#include "shared/axes.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"

namespace heddle::operators {
namespace {

// The axes to which scales and sizes refer. Without heap memory: this is used in run as well.
struct Selected {
  int axes[HEDDLE_MAX_RANK];
  int count = 0;
  const int* begin() const { return axes; }
  const int* end() const { return axes + count; }
};

Status select_axes(const ResizeNode& node, int rank, Selected* selected) {
  if (node.axes.size() > static_cast<size_t>(rank)) return invalid("axes has more entries than the input has dimensions");
  selected->count = node.axes.empty() ? rank : static_cast<int>(node.axes.size());
  uint32_t seen = 0;
  for (int i = 0; i < selected->count; ++i) {
    int& axis = selected->axes[i] = i;
    if (node.axes.empty()) continue;
    const int64_t given = node.axes[static_cast<size_t>(i)];
    if (!normalize_axis(given, rank, &axis)) return axis_outside("axes", given, rank);
    if (seen & (1u << axis)) return invalid("axes names axis " + std::to_string(axis) + " twice");
    seen |= 1u << axis;
  }
  return {};
}

Status set_output(double extent, ResizeAxis* axis) {
  if (!(extent >= 0 && extent <= INT32_MAX)) return unsupported("Resize to an axis of more than 2^31 elements");
  axis->output = static_cast<int64_t>(extent);
  return {};
}

Status apply_scales(const heddle_tensor& scales, const Selected& selected, ResizeAxis* axes) {
  const auto* values = static_cast<const float*>(scales.data);
  for (int i = 0; i < selected.count; ++i) {
    ResizeAxis& axis = axes[selected.axes[i]];
    if (!(values[i] > 0) || values[i] > 1e9f)
      return invalid("the scale of axis " + std::to_string(selected.axes[i]) + " is no positive number up to 10^9");
    // In f32, so that 10 * 0.7f is 7.
    HEDDLE_PLUGIN_CHECK(set_output(std::floor(static_cast<float>(axis.input) * values[i]), &axis));
    axis.scale = static_cast<double>(values[i]);
  }
  return {};
}

Status apply_sizes(const ResizeNode& node, const heddle_tensor& sizes, const Selected& selected, ResizeAxis* axes) {
  const bool larger = node.policy == ResizeNode::Policy::not_smaller;
  double common = larger ? 0 : HUGE_VAL;
  for (int i = 0; i < selected.count; ++i) {
    ResizeAxis& axis = axes[selected.axes[i]];
    const std::string name = std::to_string(selected.axes[i]);
    axis.output = integer_at(sizes, i);
    if (axis.output < 0) return invalid("the size of axis " + name + " is " + std::to_string(axis.output));
    if (axis.input == 0 && axis.output > 0) return invalid("axis " + name + " is empty and cannot be resized");
    axis.scale = axis.input > 0 ? static_cast<double>(axis.output) / static_cast<double>(axis.input) : 1;
    common = larger ? std::max(common, axis.scale) : std::min(common, axis.scale);
  }
  if (node.policy == ResizeNode::Policy::stretch) return {};
  for (int i : selected) {
    axes[i].scale = common;
    HEDDLE_PLUGIN_CHECK(set_output(std::floor(common * static_cast<double>(axes[i].input) + 0.5), &axes[i]));
  }
  return {};
}

}  // namespace

Status parse_resize(const Attributes& attributes, ResizeNode* node) {
  HEDDLE_PLUGIN_CHECK(parse_resize_options(attributes, &node->options));
  node->axes = attributes.ints("axes");
  const std::string policy = attributes.s("keep_aspect_ratio_policy");
  if (policy == "not_larger")
    node->policy = ResizeNode::Policy::not_larger;
  else if (policy == "not_smaller")
    node->policy = ResizeNode::Policy::not_smaller;
  else if (policy != "stretch")
    return invalid("keep_aspect_ratio_policy is \"" + policy + "\", expected stretch, not_larger or not_smaller");
  return {};
}

ResizeOperands resize_operands(const heddle_tensor* const* inputs, uint32_t count) {
  const auto given = [&](uint32_t port) {
    return port < count && inputs[port] && inputs[port]->element_count > 0 ? inputs[port] : nullptr;
  };
  return {given(1), given(2), given(3)};
}

Status resolve_axes(const ResizeNode& node, Dims dims, const ResizeOperands& operands, ResizeAxis* axes) {
  Selected selected;
  HEDDLE_PLUGIN_CHECK(select_axes(node, dims.rank, &selected));
  for (int i = 0; i < dims.rank; ++i) axes[i] = {dims[i], dims[i], 1, 0, 1, -1};
  if (!operands.scales == !operands.sizes) return invalid("exactly one of scales and sizes must be given");
  const heddle_tensor& operand = operands.scales ? *operands.scales : *operands.sizes;
  if (operand.element_count != selected.count)
    return invalid(std::string(operands.scales ? "scales" : "sizes") + " has " + std::to_string(operand.element_count) + " entries for " +
                   std::to_string(selected.count) + " axes");
  HEDDLE_PLUGIN_CHECK(operands.scales ? apply_scales(operand, selected, axes) : apply_sizes(node, operand, selected, axes));
  for (int i = 0; i < dims.rank; ++i)
    if (axes[i].input > INT32_MAX || axes[i].output > INT32_MAX) return unsupported("Resize of an axis of more than 2^31 elements");
  if (node.options.coordinates != Coordinates::tf_crop_and_resize) return {};
  const int64_t count = selected.count;
  if (!operands.roi || operands.roi->element_count != 2 * count)
    return invalid("tf_crop_and_resize needs a roi of " + std::to_string(2 * count) + " entries");
  for (int i = 0; i < selected.count; ++i) axes[selected.axes[i]].roi_entry = i;
  if (!operands.roi->data) return {};  // while shapes are inferred its content need not be known
  for (int64_t i = 0; i < count; ++i) {
    axes[selected.axes[i]].start = number_at(*operands.roi, i);
    axes[selected.axes[i]].end = number_at(*operands.roi, i + count);
  }
  return {};
}

int64_t table_entries(const ResizeNode& node, Dims input, Dims output) {
  int64_t entries = 0;
  for (int i = 0; i < input.rank; ++i) {
    // The smallest scale that leads to this extent has the widest kernel; with an aspect ratio to keep, extents are rounded.
    const double rounded = node.policy == ResizeNode::Policy::stretch ? 0 : 0.5;
    const double scale = input[i] > 0 && output[i] > 0 ? (static_cast<double>(output[i]) - rounded) / static_cast<double>(input[i]) : 1;
    entries += output[i] * tap_count(node.options, {input[i], output[i], scale * (1 - 1e-6), 0, 1, -1});
  }
  return entries;
}

}  // namespace heddle::operators
