// Arrays as the values of an input: a row of axis 0 for each sample.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "commands/train/data/sample_column.h"
#include "heddle/limits.h"
#include "heddle/session.h"
#include "net/net.h"

namespace heddle::tool {

// Reads the array of a file (tensors/tensor_files.h) in the dtype of the input; bytes become numbers from 0 to 1 where the input takes
// floats. `option` is named in errors: dtype_mismatch, invalid_argument (a number that the input's dtype lacks), those of the file.
Result<std::shared_ptr<const Blob>> read_array(const std::string& option, const PortInfo& input, const std::string& file,
                                               const Limits& limits);
// Returns random content for an input (tensors/inputs.h). Errors: unbound_symbol, limit_exceeded.
Result<std::shared_ptr<const Blob>> synthetic_array(const std::string& option, const PortInfo& input, int64_t samples, uint64_t seed);
// Returns the rows of an array, which fit the input. `identity`: what the column says of itself. Errors: shape_mismatch.
Result<std::shared_ptr<const SampleColumn>> array_column(const std::string& option, const PortInfo& input,
                                                         std::shared_ptr<const Blob> array, std::string identity = {});

}  // namespace heddle::tool
