// Finds every operator of a model that can not be imported, before anything is. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>

#include "heddle/status.h"

namespace heddle::importer {

// Looks at ONNX's own domain only: functions of the model stand for themselves, other domains are the plugins' matter. The status
// is unknown_operator with one attached diagnostic a type: where it is used, why not, nearest names.
Status check_operators(const ::onnx::ModelProto& model, int32_t opset);

}  // namespace heddle::importer
