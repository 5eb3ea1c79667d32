// The arrays that --data and --test-data name, as a dataset: one for each input of a net, with samples along axis 0.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/dataset.h"
#include "heddle/session.h"
#include "heddle/status.h"

namespace heddle::tool {

// `specs`: NAME=FILE (.npy, .safetensors:TENSOR) for each input; or "synthetic" alone: random content (tensors/inputs.h), `samples` of it.
// Numbers of other dtypes are converted to the input's: u8 to f32 / 255. Errors: missing_input, unknown_name, shape_mismatch,
// dtype_mismatch, those of the files.
Result<std::shared_ptr<const Dataset>> read_array_files(const std::string& option, const std::vector<std::string>& specs,
                                                        const std::vector<PortInfo>& inputs, int64_t samples, uint64_t seed,
                                                        const Limits& limits);
// Returns the files that it would read.
std::vector<std::string> files_of(const std::vector<std::string>& specs);

}  // namespace heddle::tool
