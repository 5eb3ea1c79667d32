// CSV files (RFC 4180) with a header as tensors: one row for each line after the header.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "heddle/limits.h"
#include "heddle/session.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

// Reads columns of numbers. `columns`: names separated by commas, in the order in which they are wanted; empty: all. One column that is
// named is a tensor [rows], else it is [rows, columns]. i64 if each number is whole, else f64. Empty lines are
// left out, but in a file of one column, where only those at the end are: another one may be a number that is missing. Errors, with the
// line: syntax (a line of another number of cells, a cell that is no number, quotation marks that do not end, an empty line in one column),
// unknown_name, duplicate_name (of wanted columns); those of reading a file.
Result<std::shared_ptr<const Blob>> read_csv(const std::string& file, const std::string& columns, const Limits& limits);

// Reads the cells of one column as they are. Errors: those of read_csv; syntax (an empty cell).
Result<std::vector<std::string>> read_csv_column(const std::string& file, const std::string& column, const Limits& limits);
// Returns true if read_csv would take each of these cells.
bool all_are_numbers(const std::vector<std::string>& cells);

// Returns the tensor of a CSV file as an input takes it: as floats, if it takes these, and one column as [rows, 1] for an
// input with two axes.
std::shared_ptr<const Blob> csv_for_input(const std::shared_ptr<const Blob>& blob, const PortInfo& input);

// Whether the argument of read_tensor names a CSV file.
bool is_csv(const std::string& text);

}  // namespace heddle::tool
