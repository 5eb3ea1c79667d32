// Declares the families of kernels, one function for each file.
#pragma once

#include "heddle/op.h"

namespace heddle::cuda {

#define HEDDLE_CUDA_FAMILIES(family)                                                                                                      \
  family(pointwise) family(reduce) family(argmax) family(cumsum) family(softmax) family(normalization) family(topk) family(loss)          \
      family(matmul) family(attention) family(einsum) family(recurrent) family(convolution) family(pool) family(spatial) family(movement) \
          family(indexing) family(fill) family(draws) family(update) family(compact) family(collective) family(nccl_collective)

#define HEDDLE_CUDA_FAMILY_DECLARED(name) void add_##name(plugin::Builder& plugin);
HEDDLE_CUDA_FAMILIES(HEDDLE_CUDA_FAMILY_DECLARED)
#undef HEDDLE_CUDA_FAMILY_DECLARED

}  // namespace heddle::cuda
