// Writes an expression as a device function of one element.
#pragma once

#include <string>
#include <vector>

#include "heddle/expression.h"
#include "heddle/op.h"

namespace heddle::cuda {

// Writes "static __device__ ... `name`(C x0, C x1, ...)" in the type C that `arithmetic` is computed in, one parameter for each input of
// the program, in order. Errors: unsupported, naming an operation that has no form for the dtype, or a constant that the dtype cannot hold.
plugin::Status element_function(const expression::Program& program, heddle_dtype arithmetic, const std::string& name, std::string* text);

// Finds the dtype whose arithmetic a program uses: that of all inputs that are not bool; without such inputs, the output's.
plugin::Status arithmetic_of(const std::vector<heddle_dtype>& inputs, heddle_dtype output, heddle_dtype* arithmetic);

}  // namespace heddle::cuda
