// What can be told of a node before a run where only the run knows the extents of its inputs, or the content that decides its outputs'.
#pragma once

#include <span>

#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/host.h"

namespace heddle {

// Dtypes of the outputs, exact; their ranks, as far as they can be guessed: inference is asked with extents that may make sense, and
// where none does the schema's type variables decide. All outputs are dynamic. `services` answers what inference asks about subnets.
// Errors: what does not depend on extents (arity_mismatch, dtype_mismatch, ...); shape_mismatch, as inference said it, where nothing else
// decides a dtype.
Status infer_late_types(const TypedNet& net, const Node& node, std::span<TensorType> outputs, CallServices* services);

}  // namespace heddle
