// Tensor bytes in a file beside the model. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <memory>
#include <set>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle::importer {

// The folder of a model's external data, and the record of what has been read.
struct ExternalData {
  std::filesystem::path folder;
  std::set<std::filesystem::path> read = {};
};

// Copies the tensor's bytes from the file that its external_data entries name. The file must be a regular file beneath the folder,
// reached without "..", an absolute path or a link that leaves the folder. Errors: weights_outside, weights_missing,
// weights_mismatch (offset or length do not fit the file or the tensor), file_corrupt (entries that are not numbers).
Result<std::shared_ptr<Blob>> read_external_data(const ::onnx::TensorProto& tensor, DType dtype, const Shape& shape,
                                                 ExternalData& external);

}  // namespace heddle::importer
