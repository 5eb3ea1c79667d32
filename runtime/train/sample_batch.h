// SampleBatch: a batch of a dataset that was read, or is to be.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/dataset.h"

namespace heddle {

// A sample that could not be read, and why.
struct BadSample {
  int64_t sample = 0;
  Status error;
};

struct SampleBatch {
  std::vector<int64_t> samples;
  int64_t padding = 0;  // how many of them, the last ones, only fill the batch
  int64_t epoch = 0;
  uint64_t seed = 0;
  Batch batch;
  // The samples that it lacks, in the order in which they were asked for. Where `samples` is empty, none could be read, or so many could
  // not that the training ends.
  std::vector<BadSample> bad;
};

}  // namespace heddle
