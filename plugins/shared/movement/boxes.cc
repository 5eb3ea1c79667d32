#include "shared/movement/boxes.h"

#include <numeric>
#include <string>

#include "shared/axes.h"

namespace heddle::operators {
namespace {

int64_t width_of(const heddle_tensor& tensor) {
  return static_cast<int64_t>(byte_width(tensor.dtype));
}

}  // namespace

Status permutation(const Attributes& attributes, int rank, std::vector<int>* order) {
  if (!attributes.has("perm")) {
    order->resize(static_cast<size_t>(rank));
    std::iota(order->rbegin(), order->rend(), 0);
    return {};
  }
  const std::vector<int64_t> perm = attributes.ints("perm");
  if (perm.size() != static_cast<size_t>(rank))
    return invalid("perm has " + std::to_string(perm.size()) + " entries for an input of rank " + std::to_string(rank));
  return normalize_axes("perm", perm, rank, order);
}

Box transposed_box(const heddle_tensor& x, const heddle_tensor& y, const int* order) {
  const int64_t width = width_of(x);
  int64_t source[HEDDLE_MAX_RANK], target[HEDDLE_MAX_RANK];
  strides_of(x, source);
  strides_of(y, target);
  Box box(width);
  for (int i = 0; i < y.rank; ++i) box.add(y.dims[i], source[order[i]] * width, target[i] * width);
  return box;
}

std::vector<heddle_format> transpose_formats(const CreateContext& context, double cost_ns) {
  const int rank = context.output(0)->rank;
  std::vector<int> order;
  if (!permutation(context.attributes, rank, &order).ok()) return {};
  std::vector<heddle_format> choices;
  const int layouts = rank >= 3 && rank <= 5 ? 2 : 1;
  for (int in = 0; in < layouts; ++in)
    for (int out = 0; out < layouts; ++out) {
      if (in && out) continue;
      heddle_format format = {};
      format.struct_size = sizeof(format);
      if (in) format.inputs[0] = channels_last(rank);
      if (out) format.outputs[0] = channels_last(rank);
      const int inner_source = in ? 1 : rank - 1, inner_target = out ? 1 : rank - 1;
      const bool same_inner = rank == 0 || order[static_cast<size_t>(inner_target)] == inner_source;
      format.cost_ns = cost_ns * (same_inner ? 1.0 : 2.0);
      choices.push_back(format);
    }
  return choices;
}

Status check_reorder_layout(const char* what, const heddle_tensor& tensor) {
  const heddle_layout& layout = tensor.layout;
  if (layout.block_count != 0 || layout.opaque_owner != 0 || (layout.rank != 0 && layout.rank != tensor.rank))
    return unsupported(std::string(what) + " of Reorder has a layout that is not an order of its dimensions");
  uint32_t seen = 0;
  for (int i = 0; i < layout.rank; ++i) {
    if (layout.order[i] >= layout.rank || (seen >> layout.order[i] & 1u))
      return invalid(std::string(what) + " of Reorder has a layout that names a dimension twice");
    seen |= 1u << layout.order[i];
  }
  return {};
}

Box reordered_box(const heddle_tensor& x, const heddle_tensor& y) {
  const int64_t width = width_of(x);
  int64_t source[HEDDLE_MAX_RANK], target[HEDDLE_MAX_RANK];
  strides_of(x, source);
  strides_of(y, target);
  Box box(width);
  for (int d = 0; d < y.rank; ++d) box.add(y.dims[d], source[d] * width, target[d] * width);
  return box;
}

Box repeated_box(const heddle_tensor& x, const heddle_tensor& y) {
  const int64_t width = width_of(x);
  Box box(width);
  int64_t source = width, target = width;
  for (int i = y.rank - 1, j = x.rank - 1; i >= 0; --i, --j) {
    const int64_t extent = j >= 0 ? x.dims[j] : 1;
    box.add(extent, source, target);
    if (extent > 0) box.add(y.dims[i] / extent, 0, target * extent);
    source *= extent;
    target *= y.dims[i];
  }
  return box;
}

Box blocks_box(const heddle_tensor& x, const heddle_tensor& y, bool to_space, int64_t block, bool channel_first) {
  const heddle_tensor &deep = to_space ? x : y, &wide = to_space ? y : x;
  const int64_t width = width_of(x);
  int64_t d[HEDDLE_MAX_RANK], w[HEDDLE_MAX_RANK];
  strides_of(deep, d);
  strides_of(wide, w);
  const int64_t channels = wide.dims[1];
  const int64_t channel_stride = channel_first ? d[1] * block * block : d[1];
  const int64_t column_stride = channel_first ? d[1] : d[1] * channels;
  Box box(width);
  const auto add = [&](int64_t extent, int64_t deep_stride, int64_t wide_stride) {
    box.add(extent, (to_space ? deep_stride : wide_stride) * width, (to_space ? wide_stride : deep_stride) * width);
  };
  add(deep.dims[0], d[0], w[0]);
  add(channels, channel_stride, w[1]);
  add(deep.dims[2], d[2], w[2] * block);
  add(block, column_stride * block, w[2]);
  add(deep.dims[3], d[3], w[3] * block);
  add(block, column_stride, w[3]);
  return box;
}

Box part_box(const heddle_tensor& whole, const heddle_tensor& part, int axis, int64_t offset, bool into_whole) {
  const int64_t width = width_of(whole);
  int64_t whole_strides[HEDDLE_MAX_RANK], part_strides[HEDDLE_MAX_RANK];
  strides_of(whole, whole_strides);
  strides_of(part, part_strides);
  Box box(width);
  for (int d = 0; d < part.rank; ++d)
    box.add(part.dims[d], (into_whole ? part_strides : whole_strides)[d] * width, (into_whole ? whole_strides : part_strides)[d] * width);
  (into_whole ? box.target_first : box.source_first) = offset * whole_strides[axis] * width;
  return box;
}

}  // namespace heddle::operators
