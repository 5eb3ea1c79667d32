// BatchReader: reads the batches of a sequence ahead of those who use them, on threads of its own.
//
// A batch that is read ahead is cached: any batch can be taken at any time, and those that were read for nothing are dropped. The threads
// have a low priority, so that they take no processor from a step; a step that waits for its samples leaves the processors to them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "base/threads/mutex.h"
#include "train/bad_samples.h"
#include "train/batch_sequence.h"
#include "train/sample_batch.h"

namespace heddle {

class BatchReader {
 public:
  // `threads`: 0, or if the data are in memory: take() reads. `ahead`: batches that are kept beside those that threads are reading and the
  // one that was taken. `end`: the threads read no batch from this number on; -1: there is no end. `max_bad`: so many samples that can not
  // be read may be left out (SampleBatch::bad).
  BatchReader(std::shared_ptr<const Dataset> data, const BatchSequence& sequence, int threads, int ahead, int64_t end = -1,
              int64_t max_bad = 0);
  ~BatchReader();
  BatchReader(const BatchReader&) = delete;
  BatchReader& operator=(const BatchReader&) = delete;

  // Returns batch `number` of the sequence, which is valid until another one is taken, and lets the threads read those that follow. Waits
  // for it; `stop` is asked now and then, and ends the wait with its error. Errors also: those of BadSamples::read; the next call reads
  // again.
  Result<const SampleBatch*> take(int64_t number, const std::function<Status()>& stop);
  // Returns how many batches of the sequence are read and wait to be taken. Of none the reader may be what a training waits for.
  int64_t ready() const;

 private:
  enum class State : uint8_t { free, reading, ready, taken };
  struct Slot {
    State state = State::free;
    int64_t number = -1;
    bool is_wanted = false;  // false: what is read is dropped
    SampleBatch read;
    Status status;
  };
  void work() noexcept;
  Slot* find_free() HEDDLE_REQUIRES(mutex_);
  Slot* find(int64_t number) HEDDLE_REQUIRES(mutex_);
  void read_here(int64_t number);
  Status begin(Slot& slot, int64_t number) noexcept HEDDLE_REQUIRES(mutex_);
  Status read(Slot& slot) noexcept;
  void continue_from(int64_t number) HEDDLE_REQUIRES(mutex_);
  void start_threads();

  const std::shared_ptr<const Dataset> data_;
  const int thread_count_;
  const int64_t end_;
  BadSamples bad_;
  mutable Mutex mutex_;
  Condition changed_;
  BatchSequence sequence_ HEDDLE_GUARDED_BY(mutex_);
  std::vector<Slot> slots_;                          // their states are guarded by mutex_, what is read by who reads or has taken it
  int64_t next_ HEDDLE_GUARDED_BY(mutex_) = 0;       // the number that is read next
  int64_t expected_ HEDDLE_GUARDED_BY(mutex_) = -1;  // the number after the one that was taken; -1: none is read ahead
  bool ends_ HEDDLE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace heddle
