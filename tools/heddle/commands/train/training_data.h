// The data of `heddle train`: one array for each input of a net, with samples along axis 0, and batches of them.
//
// Batches of an epoch are drawn without replacement, in an order that depends only on the seed and the epoch; samples left at its end are
// not used. For evaluation they come in the order of the files, and the last one may be short.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "heddle/session.h"
#include "heddle/status.h"
#include "net/net.h"

namespace heddle::tool {

class TrainingData {
 public:
  // `specs`: NAME=FILE (.npy, .safetensors:TENSOR) for each input; or "synthetic" alone: random content (tensors/inputs.h), `samples` of
  // it. Numbers of other dtypes are converted to the input's: u8 to f32 / 255. Errors: missing_input, unknown_name, shape_mismatch,
  // dtype_mismatch, those of the files.
  static Result<TrainingData> read(const std::string& option, const std::vector<std::string>& specs, const std::vector<PortInfo>& inputs,
                                   int64_t samples, uint64_t seed, const Limits& limits);
  // Files that it was read from.
  static std::vector<std::string> files(const std::vector<std::string>& specs);

  int64_t samples() const { return samples_; }
  // Returns batch `number` of training, counted from 0 over all epochs. Views are valid until the next call.
  const std::vector<TensorView>& batch(int64_t number, int64_t size, uint64_t seed);
  // Returns samples [first, first + count) in the order of the files.
  const std::vector<TensorView>& slice(int64_t first, int64_t count);
  // Describes the samples that batch() or slice() returned last, "5, 0, 17", and where one of their numbers is not finite, "input "x" has
  // nan in sample 17"; empty: nowhere.
  std::string samples_text() const;
  std::string not_finite_text() const;
  // The sample that an error refers to that names a number and its position, "label 7 at position 11": "sample 113 of input "labels"";
  // empty where no input has that number there.
  std::string sample_text(std::string_view error) const;

 private:
  const std::vector<TensorView>& gather(const int64_t* samples, int64_t count);

  int64_t samples_ = 0;
  std::vector<std::shared_ptr<const Blob>> arrays_;  // by input
  std::vector<std::vector<std::byte>> gathered_;     // likewise
  std::vector<TensorView> views_;
  std::vector<std::string> names_;  // of inputs
  std::vector<int64_t> given_;      // samples
  std::vector<int64_t> order_;      // of epoch_
  int64_t epoch_ = -1;
};

}  // namespace heddle::tool
