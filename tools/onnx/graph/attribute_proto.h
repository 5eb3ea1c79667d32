// AttributeProto → attribute values of a net. Subgraphs are the graph importer's. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>

#include "base/text/limit_names.h"
#include "heddle/status.h"
#include "net/net.h"
#include "onnx/tensors/external_data.h"

namespace heddle::importer {

// Returns the attribute's type; deduced from the filled field where the file leaves it out, as the oldest exporters do.
::onnx::AttributeProto::AttributeType type_of(const ::onnx::AttributeProto& attribute);

// Converts numbers, texts, their lists and dense tensors. Errors: unsupported (graphs, sparse tensors, types and lists of these),
// limit_exceeded, those of content_of.
Result<AttributeValue> value_of(const ::onnx::AttributeProto& attribute, ExternalData& external, const Limits& limits);

}  // namespace heddle::importer
