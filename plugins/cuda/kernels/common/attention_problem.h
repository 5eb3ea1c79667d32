// Shared by both kernels of cuda::Attention: the node's shapes, the layout of its elements, and its scale.
#pragma once

#include <cstdint>

#include "heddle/op.h"

namespace heddle::cuda {

// The problem softmax(scale query key^T) value, for each head of each sequence.
struct AttentionProblem {
  int64_t batch = 0, heads = 0;
  int64_t queries = 0, keys = 0;  // rows
  int64_t depth = 0, width = 0;   // columns of query and key, and of value and output
  int64_t heads_axis = 1;         // 1: [batch, heads, rows, columns]; 2: [batch, rows, heads, columns]
  // Returns a double: no tensor of the node has that many elements, so they might not be countable in 64 bits.
  double scores() const {
    return static_cast<double>(batch) * static_cast<double>(heads) * static_cast<double>(queries) * static_cast<double>(keys);
  }

  // Element strides of a tensor with that many rows and columns.
  struct Strides {
    int64_t batch = 0, head = 0, row = 0;
  };
  Strides strides(int64_t rows, int64_t columns) const {
    if (heads_axis == 1) return {heads * rows * columns, rows * columns, columns};
    return {rows * heads * columns, columns, heads * columns};
  }
};

// Resolves the problem from dims, each of rank 4. Errors: extents that do not match.
plugin::Status resolve_attention(int64_t heads_axis, plugin::Dims query, plugin::Dims key, plugin::Dims value, AttentionProblem* problem);

// Returns the factor of the scores, from the scale's content (input 3; null: there is none, and the factor is 1). `divides`: it is the
// inverse.
double read_scale(const void* content, heddle_dtype dtype, bool divides);

}  // namespace heddle::cuda
