// The equation of an Einsum node as labels of dimensions. Inference has already checked that it fits its operands.
#pragma once

#include <string>
#include <vector>

namespace heddle {

// A dimension: a letter, or one of an ellipsis; those are the numbers 0, 1, ... counted from the last one.
using EinsumLabel = char;

struct EinsumEquation {
  std::vector<std::string> operands;  // labels by dimension
  std::string output;
};

// `ranks`: the ranks of the operands.
EinsumEquation einsum_equation(const std::string& text, const std::vector<int>& ranks);

}  // namespace heddle
