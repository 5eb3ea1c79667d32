// BatchNormalization in training mode over the rows of all replicas, which then learn as one device does: its statistics are summed by two
// collectives in the forward pass, and two more in the backward pass.
#pragma once

#include <string>
#include <vector>

#include "derive/emitter.h"
#include "derive/polymorphic_types.h"
#include "heddle/status.h"

namespace heddle {

// Whether the node is a BatchNormalization of ONNX's that uses the statistics of its batch.
bool normalizes_batch(const Node& node);

// Emits the operators of one replica. `node`: of the net that is copied, whose types are `types`; `inputs`: the replica's. Returns the
// node's outputs, as many as it has, invalid where it leaves one out. Sums are in f32, for f64 in f64.
Result<std::vector<ValueId>> combined_normalization(Emitter& emitter, const PolymorphicTypes& types, const Node& node,
                                                    const std::vector<ValueId>& inputs, const std::string& communicator);

}  // namespace heddle
