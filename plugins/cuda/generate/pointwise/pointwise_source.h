// A whole kernel of a pointwise program: what heddle::Pointwise, and so every operator with a pointwise text, runs as on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "heddle/expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// How an input's elements go with the output's, in the output's storage order.
enum class Access : uint8_t {
  linear,    // element i with element i
  scalar,    // one for all
  repeated,  // by strides, the innermost 0
  rows,      // by strides, the innermost 1
  strided,   // by strides
};

// What the source of a kernel depends on; two nodes of equal ones run the same kernel with other parameters.
struct PointwiseShape {
  std::vector<heddle_dtype> inputs;
  heddle_dtype output = HEDDLE_DTYPE_NONE;
  std::vector<Access> access;                   // beside inputs
  int rank = 0;                                 // of the strides, where an input has some
  int width = 1;                                // elements that one thread reads and writes at once
  bool wide_index = false;                      // more than 2^31 elements
  heddle_dtype arithmetic = HEDDLE_DTYPE_NONE;  // that is computed in; none: that of the inputs that are not bool, of which there is one
  bool converts = false;                        // results are stored as Cast does, not as those of arithmetic in the output's dtype
};

inline constexpr int pointwise_threads = 256;  // of a block

// The source of a kernel called `entry`, behind text/element.cuh. Its one parameter is a struct of 64-bit words: the output's address, the
// inputs', the number of elements, and, where an input goes by strides, the dims and then the strides of each that does.
// Errors: those of element_function().
plugin::Status pointwise_source(const expression::Program& program, const PointwiseShape& shape, const std::string& entry,
                                std::string* text);

}  // namespace heddle::cuda
