// Values of which each sample has its own number, such as the tokens of a bag, one after the other; and where those of each sample begin.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "commands/train/data/sample_column.h"
#include "heddle/session.h"
#include "net/net.h"

namespace heddle::tool {

// Where the values of each sample begin, among all values: one number for each sample, and perhaps another one, the number of all values.
struct SampleOffsets {
  std::shared_ptr<const Blob> given;  // i64 or i32 [samples] or [samples + 1]
  int64_t samples = 0, values = 0;
  bool has_end() const { return given->shape[0] == samples + 1; }
  std::pair<int64_t, int64_t> range(int64_t sample) const;
};

// Checks them. `samples`: how many there are; -1: as many as offsets. Errors: shape_mismatch; invalid_argument (they do not ascend from 0,
// or lead beyond the values).
Result<std::shared_ptr<const SampleOffsets>> sample_offsets(const std::string& option, const std::string& name,
                                                            std::shared_ptr<const Blob> offsets, int64_t values, int64_t samples);
// The offsets within the batch, as they are given: with the number of all values at their end, or without.
std::shared_ptr<const SampleColumn> offsets_column(std::shared_ptr<const SampleOffsets> offsets);
// The values of the samples of the batch, rows of axis 0. REQUIRES: as many rows as offsets.values.
std::shared_ptr<const SampleColumn> ragged_column(std::shared_ptr<const Blob> values, std::shared_ptr<const SampleOffsets> offsets);

}  // namespace heddle::tool
