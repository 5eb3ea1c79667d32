// Packing problems as CSV: what `heddle plan --buffers` reads and writes. MiniMalloc's format, with an alignment column added.
//
// The first line names the columns, in any order: id,lower,upper,size[,alignment]. A buffer is alive in [lower, upper); size and
// alignment (a power of two, 1 when the column is missing) are bytes. Fields are not quoted; blank lines and a carriage return at the
// end of a line are ignored.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/text/limit_names.h"
#include "memory/offsets/offsets.h"

namespace heddle {

struct BufferTable {
  std::vector<std::string> ids;  // unique; ids[i] names problem.buffers[i]
  offsets::Problem problem;
  bool has_alignment = false;  // the file has the column
};

// Reads a table from text. The text is untrusted: syntax, duplicate_name or limit_exceeded name the line. Any thread.
Result<BufferTable> parse_buffers_csv(std::string_view text, const Limits& limits = {});
// Reads a table from a file: also file_not_found, file_unreadable, and limit_exceeded beyond limits.file_bytes.
Result<BufferTable> load_buffers_csv(const std::string& path, const Limits& limits = {});
// Formats the table with `offset` as its last column: id,lower,upper,size[,alignment],offset; alignment only if the table has it.
// solution.offsets belong to table.problem.buffers. A line feed ends each line.
std::string format_buffers_csv(const BufferTable& table, const offsets::Solution& solution);

}  // namespace heddle
