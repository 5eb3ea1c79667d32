// Finds every operator of a model that can not be imported, before anything is imported. Internal: sees protobuf.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>

#include "heddle/status.h"

namespace heddle::importer {

// Checks ONNX's own domain only: functions of the model define their operators, other domains belong to the plugins. The status is
// unknown_operator with one attached diagnostic a type: where it is used, why not, nearest names.
Status check_operators(const ::onnx::ModelProto& model, int32_t opset);

}  // namespace heddle::importer
