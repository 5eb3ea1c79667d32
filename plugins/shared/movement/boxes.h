// The boxes (shared/movement/box.h) of Transpose, Reorder, Expand, Tile, DepthToSpace, SpaceToDepth and of the parts of Concat and Split,
// in any physical layout of either side. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/movement/box.h"

namespace heddle::operators {

// Reads the order of dimensions from `perm`; all reversed without it.
Status permutation(const Attributes& attributes, int rank, std::vector<int>* order);
// Dimension i of y is dimension order[i] of x.
Box transposed_box(const heddle_tensor& x, const heddle_tensor& y, const int* order);
// The layouts that Transpose offers: one side or the other may be channels-last. `cost_ns`: of moving it all along contiguous bytes.
std::vector<heddle_format> transpose_formats(const CreateContext& context, double cost_ns);

// Errors: the layout of `tensor` (named `what` in Reorder) is no order of its dimensions.
Status check_reorder_layout(const char* what, const heddle_tensor& tensor);
Box reordered_box(const heddle_tensor& x, const heddle_tensor& y);

// y's dimensions are whole multiples of x's; leading dimensions that x lacks count as 1.
Box repeated_box(const heddle_tensor& x, const heddle_tensor& y);

// Channels of the deep tensor are (row of block, column of block, channel), or with `channel_first` (channel, row, column).
Box blocks_box(const heddle_tensor& x, const heddle_tensor& y, bool to_space, int64_t block, bool channel_first);

// `part` lies at `offset` of `whole` along `axis`; `into_whole` is the direction of the copy.
Box part_box(const heddle_tensor& whole, const heddle_tensor& part, int axis, int64_t offset, bool into_whole);

}  // namespace heddle::operators
