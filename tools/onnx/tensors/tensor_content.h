// TensorProto message → Blob: raw and typed fields, external files, every element type that Heddle has. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <memory>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"
#include "onnx/tensors/external_data.h"

namespace heddle::importer {

// `external`: the place of external data. The element count of the data must be exactly that of the dims. Errors: file_corrupt
// (dims, counts, values out of the type's range), limit_exceeded, unsupported, and those of read_external_data.
Result<std::shared_ptr<const Blob>> content_of(const ::onnx::TensorProto& tensor, ExternalData& external, const Limits& limits);

}  // namespace heddle::importer
