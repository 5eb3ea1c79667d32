// The table of the operator families of the CPU plugin: one line per family, whose file defines
//
//   void add_NAME(plugin::Builder& plugin);
//
// which declares the family's operators and is called once while the plugin loads. Sorted by folder, then by name; a test compares the
// table with the files (tests/operators/families_test.cc), and docs/operators.md lists which operator is in which file.
#pragma once

#include "heddle/op.h"

// Calls `family` (a macro of one name) for every family.
// clang-format off
#define HEDDLE_CPU_FAMILIES(family) \
  /* collective/ */ \
  family(all_gather) \
  family(all_reduce) \
  family(broadcast) \
  family(communicator) \
  family(shard) \
  /* control/ */ \
  family(if) \
  family(loop) \
  family(scan) \
  /* conv/ */ \
  family(conv) \
  family(conv_gradient) \
  /* image/ */ \
  family(grid_sample) \
  family(grid_sample_gradient) \
  family(non_max_suppression) \
  family(resize) \
  family(resize_gradient) \
  family(roi_align) \
  family(roi_align_gradient) \
  /* lookup/ */ \
  family(embedding_bag) \
  family(embedding_bag_gradient) \
  /* matmul/ */ \
  family(einsum) \
  family(gemm) \
  family(matmul) \
  /* movement/ */ \
  family(compress_nonzero) \
  family(concat_split) \
  family(constant_of_shape) \
  family(copy) \
  family(depth_to_space) \
  family(expand_tile) \
  family(eye_like) \
  family(gather) \
  family(onehot) \
  family(pad) \
  family(pad_gradient) \
  family(range) \
  family(reorder) \
  family(reshape) \
  family(reverse_sequence) \
  family(scatter) \
  family(scatter_slice) \
  family(shape) \
  family(slice) \
  family(topk) \
  family(transpose) \
  family(trilu) \
  family(unique) \
  /* normalization/ */ \
  family(normalization) \
  family(normalization_channel) \
  family(normalization_channel_gradient) \
  family(normalization_local) \
  family(normalization_row_gradient) \
  /* pointwise/ */ \
  family(activation) \
  family(arithmetic) \
  family(bitwise) \
  family(cast) \
  family(compare) \
  family(logical) \
  family(pointwise) \
  family(unary) \
  family(variadic) \
  family(where) \
  /* pooling/ */ \
  family(pooling) \
  family(pooling_gradient) \
  /* random/ */ \
  family(dropout) \
  family(random) \
  /* recurrent/ */ \
  family(recurrent) \
  family(recurrent_gradient) \
  /* reduce/ */ \
  family(argmax) \
  family(cumsum) \
  family(reduce) \
  family(softmax) \
  family(sum_to) \
  /* training/ */ \
  family(loss) \
  family(loss_gradient) \
  family(variable_updates) \
  family(optimizer_rows) \
  family(optimizer_state) \
  family(scatter_rows) \
  family(sparse_to_dense) \
  family(weighted_sum)
// clang-format on

namespace heddle::cpu {

#define HEDDLE_DECLARE_FAMILY(name) void add_##name(plugin::Builder& plugin);
HEDDLE_CPU_FAMILIES(HEDDLE_DECLARE_FAMILY)
#undef HEDDLE_DECLARE_FAMILY

}  // namespace heddle::cpu
