// NumPy's .npy files, versions 1 to 3; read in either order of axes and of bytes, written in C order and little-endian.
#pragma once

#include <memory>
#include <string>

#include "heddle/session.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

// Errors: file_*, syntax, unsupported (structured, object, text and complex types: named).
Result<std::shared_ptr<const Blob>> read_npy(const std::string& file, const Limits& limits = {});
// bf16 is written as u16: NumPy has no such type.
Status write_npy(const std::string& file, const TensorView& tensor);

}  // namespace heddle::tool
