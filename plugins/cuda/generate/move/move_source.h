// What the sources of kernels that move elements (text/move.cuh) have in common: units and dividers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "generate/kernel_text.h"
#include "shared/operator_api.h"

namespace heddle::cuda {

constexpr unsigned int move_threads = 256;
constexpr int64_t widest_unit = 16;  // bytes that a thread moves at once

// The integer type of a unit of so many bytes.
const char* unit_type(int64_t bytes);
// The largest unit that both amounts of bytes are multiples of.
inline int64_t common_unit(int64_t unit, int64_t bytes) {
  while (bytes % unit != 0) unit /= 2;
  return unit;
}
// The word by which text/move.cuh divides positions: `wide` where they may be 2^31 or more.
int64_t divider_of(int64_t divisor, bool wide);
// Extents of a walk through dimensions (offset_of), and what it divides by. Of as many as `rank` says.
void write_walk(ParameterWriter& writer, const int64_t* extents, int rank, bool wide);

// A kernel that copies an input to output 0, which are equally large, and does nothing where both are the same.
void write_bytes_copy(KernelSource* source, bool wide);
void plan_bytes_copy(const Operands& operands, uint32_t kernel, LaunchPlan* plan, uint32_t input = 0);

}  // namespace heddle::cuda
