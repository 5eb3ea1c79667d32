// Which samples of a batch an error is about.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "heddle/dataset.h"

namespace heddle {

// A batch that was read: what was requested, and the values that came.
struct ReadBatch {
  const Dataset& data;
  const std::vector<int64_t>& samples;
  const Batch& batch;
};

// Returns the names of the samples, "5, 0, 17"; of many, the first ones.
std::string samples_text(const ReadBatch& read);
// Returns where a number of the batch is not finite, `input "x" has nan in sample 17`; empty: nowhere.
std::string not_finite_text(const ReadBatch& read);
// Returns the sample that an error refers to that names a number and its position, "label 7 at position 11", as
// `sample 113 of input "labels"`; empty: no value of the batch has that number there.
std::string sample_text(const ReadBatch& read, std::string_view error);

}  // namespace heddle
