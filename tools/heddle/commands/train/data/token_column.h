// One long row of tokens as the values of an input [batch, length]: the samples are its parts of that length, one after the other.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "commands/train/data/sample_column.h"
#include "heddle/limits.h"
#include "heddle/session.h"
#include "net/net.h"

namespace heddle::tool {

// Reads tokens: a one-dimensional array of integers (tensors/tensor_files.h), or each byte of a .txt file. Errors: those of the file;
// dtype_mismatch, shape_mismatch.
Result<std::shared_ptr<const Blob>> read_tokens(const std::string& option, const std::string& file, const Limits& limits);
// Sample k has the tokens from k * length + shift on, in the dtype of the input, i64 or i32. `max_shift`: the largest one of the columns
// that go together, which all have as many samples. Errors: unbound_symbol (the input has no fixed length); dtype_mismatch.
Result<std::shared_ptr<const SampleColumn>> token_column(const std::string& option, const PortInfo& input,
                                                         std::shared_ptr<const Blob> tokens, int64_t shift, int64_t max_shift);

}  // namespace heddle::tool
