// Tensors from and to files: .npy, .safetensors[:TENSOR], .csv[:COLUMN,COLUMN], .pb; text for --print; hashes for --json.
#pragma once

#include <memory>
#include <string>

#include "heddle/session.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

// Returns the file in an argument of read_tensor.
std::string file_of_tensor(const std::string& text);
// Reads by the file's extension, else, a stream too (common/standard_streams.h), by its content; weight_file_bytes and tensor_bytes limit
// the size. "weights.safetensors:fc1" names one tensor; without a name the file must hold exactly one. "points.csv:x,y" names two columns
// (tensors/csv.h).
Result<std::shared_ptr<const Blob>> read_tensor(const std::string& text, const Limits& limits = {});
// Writes .npy or .safetensors (tensor named `name`), replaced as a whole; to a stream .npy.
Status write_tensor(const std::string& file, const std::string& name, const TensorView& tensor);
// Prints at most `limit` elements, row by row.
std::string tensor_text(const TensorView& tensor, int64_t limit = 64);
std::string sha256_hex(const void* data, size_t bytes);
// Returns the element with all digits of whole numbers of 64 bits.
long double element_exactly(const TensorView& tensor, int64_t index);
// Returns text that reads back as the same element.
std::string element_text(const TensorView& tensor, int64_t index);

}  // namespace heddle::tool
