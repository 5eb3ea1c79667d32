// Tensors from and to files: .npy, .safetensors[:TENSOR], .pb; text for --print; hashes for --json.
#pragma once

#include <memory>
#include <string>

#include "heddle/session.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

// The file of what read_tensor takes.
std::string file_of_tensor(const std::string& text);
// By the file's extension, held to weight_file_bytes and tensor_bytes. "weights.safetensors:fc1" names one tensor; without a name the file
// must hold exactly one.
Result<std::shared_ptr<const Blob>> read_tensor(const std::string& text, const Limits& limits = {});
// .npy or .safetensors (tensor named `name`), replaced as a whole.
Status write_tensor(const std::string& file, const std::string& name, const TensorView& tensor);
// At most `limit` elements, row by row.
std::string tensor_text(const TensorView& tensor, int64_t limit = 64);
std::string sha256_hex(const void* data, size_t bytes);
// One element as a double, which has the nearest of whole numbers from 2^53 on.
double element(const TensorView& tensor, int64_t index);
// The same where whole numbers of 64 bits keep their last digits.
long double element_exactly(const TensorView& tensor, int64_t index);
// Reads back as the same element.
std::string element_text(const TensorView& tensor, int64_t index);

}  // namespace heddle::tool
