// An expression as a device function of one element.
#pragma once

#include <string>
#include <vector>

#include "heddle/expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// "static __device__ ... `name`(C x0, C x1, ...)" in the type C that `arithmetic` is computed in, one parameter for each input of the
// program, in order. Errors: unsupported, naming an operation that has no form for the dtype, or a constant that it does not hold.
plugin::Status element_function(const expression::Program& program, heddle_dtype arithmetic, const std::string& name, std::string* text);

// The dtype whose arithmetic a program has: that of all inputs that are not bool; of none, the output's.
plugin::Status arithmetic_of(const std::vector<heddle_dtype>& inputs, heddle_dtype output, heddle_dtype* arithmetic);

}  // namespace heddle::cuda
