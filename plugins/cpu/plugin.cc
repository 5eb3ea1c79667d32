// The CPU plugin: ONNX's operators and Heddle's own for host memory. One line per family; operators are declared beside their kernels.
#include "families.h"

namespace heddle::cpu {
namespace {

void add_families(plugin::Builder& plugin) {
  add_reshape(plugin);
  add_shape(plugin);
  add_transpose(plugin);
  add_concat(plugin);
  add_slice(plugin);
  add_repeat(plugin);
  add_space(plugin);
  add_pad(plugin);
  add_gather(plugin);
  add_scatter(plugin);
  add_onehot(plugin);
  add_topk(plugin);
  add_cumulate(plugin);
  add_reverse_sequence(plugin);
  add_select(plugin);
  add_unique(plugin);
  add_random(plugin);
  add_dropout(plugin);
  add_optimizer(plugin);
  add_loss(plugin);
  add_non_max_suppression(plugin);
  add_einsum(plugin);
  add_recurrent(plugin);
  add_grid_sample(plugin);
  add_roi_align(plugin);
  add_resize(plugin);
  add_if(plugin);
  add_loop(plugin);
  add_scan(plugin);
  add_pointwise(plugin);
  add_unary(plugin);
  add_activation(plugin);
  add_binary(plugin);
  add_compare(plugin);
  add_logical(plugin);
  add_cast(plugin);
  add_reduce(plugin);
  add_reduce_arg(plugin);
  add_softmax(plugin);
  add_normalization(plugin);
  add_normalization_channel(plugin);
  add_normalization_local(plugin);
  add_conv(plugin);
  add_matmul(plugin);
  add_gemm(plugin);
  add_pooling(plugin);
  add_reorder(plugin);
  add_copy(plugin);
}

}  // namespace
}  // namespace heddle::cpu

HEDDLE_PLUGIN("cpu", "0.1.0", plugin) {
  heddle::cpu::add_families(plugin);
}
