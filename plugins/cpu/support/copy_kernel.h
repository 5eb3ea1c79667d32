// CopyKernel: the base of operators that move their first input to their first output as one StridedCopy, divided evenly over the tiles.
#pragma once

#include <cstdint>

#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/strided_copy.h"

namespace heddle::cpu {

// A derived class plans copy_ and tiling_ in prepare. Read-only while running: any threads may run disjoint tiles.
class CopyKernel {
 public:
  Status run(const RunContext& context, int64_t begin, int64_t end) const { return run_copy(context, copy_, begin, end); }

 protected:
  // Runs the share of tiles [begin, end) of `copy`.
  Status run_copy(const RunContext& context, const StridedCopy& copy, int64_t begin, int64_t end) const {
    const Tiling::Range units = tiling_.range(copy.units(), begin, end);
    copy.run(context.inputs[0]->data, context.outputs[0]->data, units.first, units.last);
    return {};
  }

  StridedCopy copy_;
  Tiling tiling_;
};

}  // namespace heddle::cpu
