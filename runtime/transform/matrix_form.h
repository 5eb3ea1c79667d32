// Writes a sum of products of two operands as a product of matrices, or of a batch of them. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>

namespace heddle {

// Extents by label (transform/einsum_equation.h).
using LabelExtents = std::array<int64_t, 128>;

bool has_label(const std::string& labels, char label);

// Returns the product of the extents of these labels.
int64_t element_count(const std::string& labels, const LabelExtents& extents);

// left [batch, rows, depth] x right [batch, depth, columns] = [batch, rows, columns], each of them labels in the order in which they lie.
struct MatrixForm {
  bool swapped = false;  // the second operand is the left matrix
  std::string batch, rows, depth, columns;
  // True if the operand lies as [depth, rows], or as [columns, depth], and is read so: only without a batch.
  bool left_turned = false, right_turned = false;
  int64_t moved = 0;  // elements of operands and result that have to be brought into another order

  std::string left() const { return batch + (left_turned ? depth + rows : rows + depth); }
  std::string right() const { return batch + (right_turned ? columns + depth : depth + columns); }
  std::string result() const { return batch + rows + columns; }
};

// Returns one of the forms that move the fewest elements. Operands have each label once; labels of one operand alone are all in `output`,
// whose order matters where `ordered`.
MatrixForm matrix_form(const std::string& first, const std::string& second, const std::string& output, bool ordered,
                       const LabelExtents& extents);

// True if operands and output lie so that a library multiplies their matrices by strides, without moving anything: rows, columns and summed
// labels are present, each in the same order wherever it is, and matrices lie row by row or column by column. `calls`: how many calls it
// takes, one for each part of the batch that has no common step.
bool lies_as_matrices(const std::string& first, const std::string& second, const std::string& output, const LabelExtents& extents,
                      int64_t* calls);

}  // namespace heddle
