// SampleColumn: the values that one input has for the samples of a dataset.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "heddle/dataset.h"
#include "heddle/status.h"

namespace heddle::tool {

// Immutable. Threads: any.
class SampleColumn {
 public:
  virtual ~SampleColumn() = default;
  virtual int64_t samples() const = 0;
  // Makes value `i` of the batch. REQUIRES: the samples are there.
  virtual Status read(const BatchRequest& request, size_t i, Batch& batch) const = 0;
  // Whether reading only copies or refers to memory.
  virtual bool is_in_memory() const { return true; }
  // Returns what people call a sample; empty: nothing better than its number.
  virtual std::string sample_name(int64_t) const { return {}; }
  // Returns what the samples are besides their number (Dataset::identity()); empty: nothing is known.
  virtual std::string identity() const { return {}; }
};

struct NamedColumn {
  std::string input;
  std::shared_ptr<const SampleColumn> column;
};

// Returns a dataset of columns, one for each input. Errors: shape_mismatch, naming `option`: two have different numbers of samples.
Result<std::shared_ptr<const Dataset>> dataset_of(const std::string& option, std::vector<NamedColumn> columns);

}  // namespace heddle::tool
