// The meaning of an equation of Einsum for operands of given extents. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "shared/operator_api.h"
#include "shared/products/matmul_problem.h"

namespace heddle::operators {

constexpr int max_einsum_labels = 16, max_einsum_operands = 8;

// The labels of the operands' dimensions. Labels of the output come first, then the summed ones.
struct EquationLabels {
  int label_count = 0, output_rank = 0, operand_count = 0;
  int8_t labels[max_einsum_operands][HEDDLE_MAX_RANK] = {};
};
Status parse_equation(const std::string& equation, const std::vector<Dims>& operands, EquationLabels* parsed);

// The equation applied to the operands' dims.
struct SumOfProducts {
  int label_count = 0, output_rank = 0, operand_count = 0;
  int64_t extents[max_einsum_labels] = {};
  int64_t strides[max_einsum_operands][max_einsum_labels] = {};  // in elements
  double products() const {
    double n = 1;
    for (int i = 0; i < label_count; ++i) n *= static_cast<double>(extents[i]);
    return n;
  }
};

// The first allocates nothing.
Status make_sum_of_products(const EquationLabels& equation, const Dims* operands, SumOfProducts* sum);
Status make_sum_of_products(const std::string& equation, const std::vector<Dims>& operands, SumOfProducts* sum);

// True if the sum is a product of two matrices, or a batch of them, that lie row by row or column by column. `swapped`: operand 1 is the
// left one.
bool is_matrix_product(const SumOfProducts& sum, MatMulProblem* problem, bool* swapped);

}  // namespace heddle::operators
