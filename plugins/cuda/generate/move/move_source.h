// Shared parts of the sources of kernels that move elements (text/move.cuh): units and dividers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "generate/kernel_text.h"
#include "shared/operator_api.h"

namespace heddle::cuda {

constexpr unsigned int move_threads = 256;
constexpr int64_t widest_unit = 16;  // bytes that a thread moves at once

// Returns the integer type of a unit of that many bytes.
const char* unit_type(int64_t bytes);
// Returns the largest unit that divides both numbers of bytes.
inline int64_t common_unit(int64_t unit, int64_t bytes) {
  while (bytes % unit != 0) unit /= 2;
  return unit;
}
// Returns the word by which text/move.cuh divides positions. `wide`: they may be 2^31 or more.
int64_t divider_of(int64_t divisor, bool wide);
// Writes the extents of a walk through `rank` dimensions (offset_of), and the dividers for them.
void write_walk(ParameterWriter& writer, const int64_t* extents, int rank, bool wide);

// Writes a kernel that copies an input to output 0, which has the same size, and does nothing if both are the same.
void write_bytes_copy(KernelSource* source, bool wide);
void plan_bytes_copy(const Operands& operands, uint32_t kernel, LaunchPlan* plan, uint32_t input = 0);

}  // namespace heddle::cuda
