// The types that can be inferred for a node before a run where the extents of its inputs, or the content that decides those of its outputs,
// are known only during the run.
#pragma once

#include <span>

#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/host.h"

namespace heddle {

// Infers the dtypes of the outputs, exactly, and their ranks, as far as they can be guessed: inference is tried with plausible extents, and
// where none fits the schema's type variables decide. All outputs are dynamic. `services` answers questions of inference about subnets.
// Errors: those that do not depend on extents (arity_mismatch, dtype_mismatch, ...); shape_mismatch, as inference reported it, where
// nothing else decides a dtype.
Status infer_late_types(const TypedNet& net, const Node& node, std::span<TensorType> outputs, CallServices* services);

}  // namespace heddle
