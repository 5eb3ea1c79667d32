// Checks of the shapes of inputs in infer, and their error texts. Pure.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "shared/dims.h"

namespace heddle::operators {

// The name of an input in its operator; those of a variadic port have one name.
inline std::string input_name(const InferContext& context, uint32_t input) {
  const heddle_operator& op = context.op();
  return op.inputs[std::min(input, op.input_count - 1)]->name;
}

// Errors: the input has another shape. An absent input passes.
inline Status expect_shape(const InferContext& context, uint32_t input, Dims expected, const char* whose = nullptr) {
  if (!context.has_input(input)) return {};
  const Dims given = context.dims(input);
  if (std::equal(given.begin(), given.end(), expected.begin(), expected.end())) return {};
  return invalid(input_name(context, input) + " has shape " + dims_text(given) + ", expected " + dims_text(expected) +
                 (whose ? std::string(", ") + whose : ""));
}
inline Status expect_shape(const InferContext& context, uint32_t input, const std::vector<int64_t>& expected, const char* whose = nullptr) {
  return expect_shape(context, input, dims_of(expected), whose);
}

// Errors: the input has not exactly one element. `name`: given if its operator has several inputs of one name.
inline Status expect_scalar(const InferContext& context, uint32_t input, const char* name = nullptr) {
  if (!context.has_input(input) || context.input(input).element_count == 1) return {};
  return invalid((name ? name : input_name(context, input)) + " has shape " + dims_text(context.dims(input)) + ", expected a scalar");
}

}  // namespace heddle::operators
