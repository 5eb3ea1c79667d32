// The operator families of the CPU plugin: each file below this folder that declares operators has one function here, called once by
// plugin.cc while the plugin loads.
#pragma once

#include "heddle/op.h"

namespace heddle::cpu {

// Shape, movement, indexing, control flow and random operators (one file each).
void add_reshape(plugin::Builder& plugin);
void add_shape(plugin::Builder& plugin);
void add_transpose(plugin::Builder& plugin);
void add_concat(plugin::Builder& plugin);
void add_slice(plugin::Builder& plugin);
void add_repeat(plugin::Builder& plugin);
void add_space(plugin::Builder& plugin);
void add_pad(plugin::Builder& plugin);
void add_gather(plugin::Builder& plugin);
void add_scatter(plugin::Builder& plugin);
void add_onehot(plugin::Builder& plugin);
void add_topk(plugin::Builder& plugin);
void add_cumulate(plugin::Builder& plugin);
void add_reverse_sequence(plugin::Builder& plugin);
void add_select(plugin::Builder& plugin);
void add_unique(plugin::Builder& plugin);
void add_random(plugin::Builder& plugin);
void add_dropout(plugin::Builder& plugin);
void add_optimizer(plugin::Builder& plugin);
void add_loss(plugin::Builder& plugin);
void add_non_max_suppression(plugin::Builder& plugin);
void add_einsum(plugin::Builder& plugin);
void add_recurrent(plugin::Builder& plugin);
void add_grid_sample(plugin::Builder& plugin);
void add_roi_align(plugin::Builder& plugin);
void add_resize(plugin::Builder& plugin);
void add_if(plugin::Builder& plugin);
void add_loop(plugin::Builder& plugin);
void add_scan(plugin::Builder& plugin);

// Pointwise programs, elementwise operators, reductions, normalisations (one file each).
void add_pointwise(plugin::Builder& plugin);
void add_unary(plugin::Builder& plugin);
void add_activation(plugin::Builder& plugin);
void add_binary(plugin::Builder& plugin);
void add_compare(plugin::Builder& plugin);
void add_logical(plugin::Builder& plugin);
void add_cast(plugin::Builder& plugin);
void add_reduce(plugin::Builder& plugin);
void add_reduce_arg(plugin::Builder& plugin);
void add_softmax(plugin::Builder& plugin);
void add_normalization(plugin::Builder& plugin);
void add_normalization_channel(plugin::Builder& plugin);
void add_normalization_local(plugin::Builder& plugin);

// Convolutions, matrix products, pooling, layouts (one file each).
void add_conv(plugin::Builder& plugin);
void add_matmul(plugin::Builder& plugin);
void add_gemm(plugin::Builder& plugin);
void add_pooling(plugin::Builder& plugin);
void add_reorder(plugin::Builder& plugin);
void add_copy(plugin::Builder& plugin);

}  // namespace heddle::cpu
