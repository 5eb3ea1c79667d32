// Writes the whole kernel of a pointwise program, by which heddle::Pointwise, and so every operator with a pointwise text, runs on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// How an input's elements are read for the output's, in the output's storage order.
enum class Access : uint8_t {
  linear,    // element i with element i
  scalar,    // one element for all
  repeated,  // by strides, the innermost 0
  rows,      // by strides, the innermost 1
  strided,   // by other strides
};

// The properties that a kernel's source depends on; two nodes with equal shapes run the same kernel with other parameters.
struct PointwiseShape {
  std::vector<heddle_dtype> inputs;
  heddle_dtype output = HEDDLE_DTYPE_NONE;
  std::vector<Access> access;                   // one for each input
  int rank = 0;                                 // number of strides, if an input has some
  int width = 1;                                // elements that one thread reads and writes at once
  bool wide_index = false;                      // more than 2^31 elements
  heddle_dtype arithmetic = HEDDLE_DTYPE_NONE;  // used in computation; none: that of the inputs that are not bool, of which there is one
  bool converts = false;                        // results are stored as by Cast, not as by arithmetic in the output's dtype
};

inline constexpr int pointwise_threads = 256;  // in a block

// Writes the source of a kernel called `entry`, which follows text/element.cuh. Its one parameter is a struct of 64-bit words: the output's
// address, the inputs', the number of elements, and, if an input is read by strides, the dims and then the strides of each such input.
// Errors: those of element_function().
plugin::Status pointwise_source(const expression::Program& program, const PointwiseShape& shape, const std::string& entry,
                                std::string* text);

}  // namespace heddle::cuda
