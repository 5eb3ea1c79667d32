// BatchSequence: which samples the batches of a training have, as a function of the seed and the number of the batch.
#pragma once

#include <cstdint>
#include <vector>

#include "heddle/trainer.h"

namespace heddle {

class BatchSequence {
 public:
  struct Options {
    int64_t samples = 0, batch = 1;  // REQUIRES: 1 <= batch; and batch <= samples, or 1 <= samples and not LastBatch::drop
    LastBatch last_batch = LastBatch::drop;
    bool shuffle = true;
    uint64_t seed = 0;
    bool tests = false;  // batches to test with: requests say so
    // Each of several ranks has its part of every batch (net/batch_parts.h), which may be empty.
    int rank = 0, ranks = 1;
  };
  explicit BatchSequence(const Options& options);
  int64_t batches_of_epoch() const { return batches_; }
  // Returns the number of samples of batch `number`, of all ranks together, without those that only fill it.
  int64_t samples_of(int64_t number) const;
  // Returns the samples of batch `number`, counted from 0 over all epochs; valid until the next call. The order of an epoch is computed
  // when its first batch is requested, and is kept.
  BatchRequest request(int64_t number);

 private:
  void make_order(int64_t epoch);
  const Options options_;
  const int64_t batches_;
  std::vector<int64_t> order_;  // of epoch_
  int64_t epoch_ = -1;
};

}  // namespace heddle
