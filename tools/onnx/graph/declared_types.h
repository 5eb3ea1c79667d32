// TypeProto → declared types of a net's values. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <string>

#include "heddle/status.h"
#include "net/net.h"
#include "onnx/graph/hints.h"

namespace heddle::importer {

// The type of a net input. A dimension without number or name becomes the symbol <input>_dim_<i>. Errors: unsupported (sequences, maps,
// optionals, sparse tensors, element types that Heddle does not have, rank over 8), limit_exceeded (more elements than 63 bits count),
// syntax (no type).
Result<DeclaredType> input_type(const ::onnx::ValueInfoProto& info);

// The declared type of another value: dtype, and dims only when all are numbers, because exporters write symbols there that nothing binds.
// All unknown when the file declares nothing usable.
DeclaredType stated_type(const ::onnx::ValueInfoProto& info);
Hint stated_hint(const ::onnx::ValueInfoProto& info);

}  // namespace heddle::importer
