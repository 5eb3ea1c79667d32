// Dataset: the samples that a Trainer trains and tests with (heddle/trainer.h).
//
//   auto points = heddle::Dataset::of_arrays({{"points", xy}, {"labels", classes}});  // both views have one row for each sample
//
// A dataset has no position. The samples of a batch are a function of the seed, the epoch and the number of the batch, so that a training
// that continues from a checkpoint reads the same batches as one that was never interrupted. Programs may derive their own datasets.
//
// Requires C++17; needs neither RTTI nor exceptions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "heddle/export.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

// The values of some samples, together the inputs of one run: for each name of the dataset one value, whose axis 0 usually is that of the
// samples. A batch owns memory, which it keeps when it is filled again. Threads: one at a time.
class HEDDLE_API Batch {
 public:
  Batch();
  Batch(Batch&&) noexcept;
  Batch& operator=(Batch&&) noexcept;
  ~Batch();
  // The values, in the order of Dataset::names(); valid until the batch is filled again.
  const std::vector<TensorView>& values() const;
  // For Dataset::read, which calls one of these two for each value. make() gives value i this type, and memory of the batch whose content
  // is undefined; it returns the memory, which is not null. refer() makes value i memory of the dataset. Errors: out_of_memory,
  // limit_exceeded (more bytes than an int64_t counts).
  Result<void*> make(size_t i, DType dtype, const Shape& shape);
  Status refer(size_t i, const TensorView& memory);
  // Returns the number of bytes that the batch owns.
  int64_t owned_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The samples that remain at the end of an epoch and are fewer than a batch.
enum class LastBatch : uint8_t {
  drop,  // not used in this epoch
  keep,  // a batch of their own, smaller than the others; the net then also needs a plan for it
  pad,   // a batch as large as the others, in which the last sample is repeated, with the weight 0 (TrainerOptions::weights)
};

// The samples that a batch consists of, in this order.
struct BatchRequest {
  const int64_t* samples = nullptr;  // `count` numbers from 0 to Dataset::samples() - 1
  int64_t count = 0;
  int64_t padding = 0;  // how many of them, the last ones, only fill the batch
  // For datasets that change their samples at random: what is drawn for a sample depends on these two and on the number of the sample, and
  // on nothing else. epoch: counted from 0; -1: the samples are tested with, and are not changed at random.
  uint64_t seed = 0;
  int64_t epoch = 0;
};

// Threads: all const member functions may be called from several threads at once.
class HEDDLE_API Dataset {
 public:
  virtual ~Dataset();
  // Returns the names of the inputs that it has values for.
  virtual const std::vector<std::string>& names() const = 0;
  // Returns the number of samples, which is constant.
  virtual int64_t samples() const = 0;
  // Fills `batch` with the samples of the request. Errors: those of the dataset. When it fails, a trainer reads each sample by itself to
  // find those that can not be read (TrainerOptions::max_bad_samples), so it should depend on the sample alone whether it can be read.
  virtual Status read(const BatchRequest& request, Batch& batch) const = 0;
  // Returns true if read() only copies or refers to memory. Such a dataset is read by the thread that trains: handing batches over from
  // another one would take longer.
  virtual bool is_in_memory() const { return false; }
  // Returns what people call a sample, for errors: the number of the sample, unless a dataset has something better, such as a file's name.
  virtual std::string sample_name(int64_t sample) const;
  // Returns a text that is another one where the samples are others, or in another order, or what their numbers stand for: a checkpoint
  // keeps it, and no training of another one continues from there. Empty: nothing is known of that.
  virtual std::string identity() const;

  // Makes a dataset of arrays in memory, which must stay valid and unchanged as long as the dataset lives. Each is (name, view), and has
  // one row of axis 0 for each sample. Consecutive samples are not copied. Errors: invalid_argument (no array, no data, an array without
  // axes), duplicate_name, shape_mismatch (arrays of different numbers of samples).
  static Result<std::shared_ptr<const Dataset>> of_arrays(std::vector<std::pair<std::string, TensorView>> arrays);
};

}  // namespace heddle
