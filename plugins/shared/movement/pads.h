// The meaning of Pad: its modes, the pads of every axis, and the input element of each output element. Pure.
#pragma once

#include <cstdint>

#include "shared/computed_extents.h"

namespace heddle::operators {

constexpr uint32_t pads_port = 1, pad_value_port = 2, pad_axes_port = 3;
enum class PadMode : uint8_t { constant, edge, reflect, wrap };

Status parse_pad_mode(const Attributes& attributes, PadMode* mode);

struct Pads {
  int64_t before[HEDDLE_MAX_RANK] = {}, after[HEDDLE_MAX_RANK] = {};
};

// Computes the extents of the output, and the pads of every axis, from the operands, whose content must be readable.
Status pad_extents(Dims from, const heddle_tensor& operand, const heddle_tensor* axes, PadMode mode, Pads* pads, Extents* to);

// The input position for output position `at` - before; -1: the constant.
int64_t source_position(int64_t at, int64_t extent, PadMode mode);

// Axes in physical order; trailing axes without pads are one block of bytes.
struct PadPlan {
  int rank = 0;
  int64_t in[HEDDLE_MAX_RANK], out[HEDDLE_MAX_RANK], before[HEDDLE_MAX_RANK], stride[HEDDLE_MAX_RANK];  // strides of the input in bytes
  int64_t block = 1;                                                                                    // bytes
  int64_t rows = 1;
};

PadPlan pad_plan(const heddle_tensor& x, const heddle_tensor& y, const Pads& pads);

}  // namespace heddle::operators
