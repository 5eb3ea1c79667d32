// A serial order of a graph's nodes. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <vector>

#include "heddle/status.h"

namespace heddle::importer {

using NodeList = ::google::protobuf::RepeatedPtrField<::onnx::NodeProto>;

// Returns indices of `nodes` so that each comes after the producers of the values that it and its subgraphs read; the file's own order
// where that is valid already, as ONNX requires. Deterministic. Errors: duplicate_name (a value with two producers), cycle.
Result<std::vector<int>> serial_order(const NodeList& nodes);

}  // namespace heddle::importer
