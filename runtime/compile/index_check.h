// The indices that an operator reads, checked before it runs: an update that refused an index itself would leave variables half-updated, by
// the updates before it or for all that the run can know.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/plan.h"
#include "heddle/abi.h"

namespace heddle {

// An input of an update that can be checked before the update phase.
struct CheckedInput {
  uint32_t step = 0;
  IndexInput indices;
};
// Returns those of a plan: integers that no step of the update phase makes.
std::vector<CheckedInput> checked_inputs(const Plan& plan);

// Returns the text of the first index that is outside of `axis` of tensor `of`; nullopt: there is none, or their extents are not known.
// Indices count from the end if they are negative. REQUIRES: their dtype is i32 or i64, and their bytes are on the host.
std::optional<std::string> index_outside(const heddle_tensor& indices, const heddle_tensor& of, int32_t axis);

// Returns the kernel of a step that does this for its inputs, the indices and what they index, on a device that runs the host's kernels.
// Its state is the axis, an int32_t from new.
const KernelEntry* index_check_kernel();

}  // namespace heddle
