// Gradients that are zeros with a part filled in, like those of Slice and GatherND: they are added to a sum without the zeros.
#pragma once

#include <optional>

#include "derive/emitter.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

// Where the operator that was emitted last adds into zeros and `part` is its result, makes it add into `sum` instead and removes the
// producers of the zeros. None: `part` is something else, or is on another device than the emitter's own. `sum`: of the shape and dtype of
// `part`.
Result<std::optional<ValueId>> scattered_into(const Net& net, ValueId part, ValueId sum, Emitter& emitter);

}  // namespace heddle
