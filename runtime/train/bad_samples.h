// BadSamples: reads the batches of a dataset of which some samples can not be read.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "base/threads/mutex.h"
#include "train/sample_batch.h"

namespace heddle {

// Threads: read() may be called by several at once, each with a batch of its own.
class BadSamples {
 public:
  // `max_count`: so many samples may be left out of batches; 0: none.
  explicit BadSamples(int64_t max_count) : max_count_(max_count) {}
  // Fills of.batch with of.samples. Samples that can not be read, each by itself, are left out: they go to of.bad, the others move up, the
  // last one of these is repeated in the places at the end, and of.padding counts the repeats. A sample that was met before is not read
  // again. What comes out depends on the request alone, as long as it depends on the sample alone whether it can be read. Errors: those of
  // Dataset::read that are no fault of a sample, or of a batch whose samples all can be read; and, where none may be left out, that of the
  // first sample, which is named.
  Status read(const Dataset& data, SampleBatch& of);

 private:
  Status search(const Dataset& data, const std::vector<int64_t>& asked, SampleBatch& of);
  std::vector<BadSample> known(std::span<const int64_t> asked) const;
  void remember(const BadSample& bad);

  const int64_t max_count_;
  mutable Mutex mutex_;
  std::map<int64_t, Status> known_ HEDDLE_GUARDED_BY(mutex_);  // at most max_count_
};

}  // namespace heddle
