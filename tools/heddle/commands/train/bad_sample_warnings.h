// The warnings of samples that a training leaves out because they can not be read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "heddle/status.h"

namespace heddle::tool {

class BadSampleWarnings {
 public:
  static constexpr int64_t max_shown = 10;
  // Returns the warning that the sample is left out because of this error; none: as many were shown already.
  std::optional<Diagnostic> take(const std::string& sample, const Status& error);
  int64_t count() const { return count_; }
  // Returns the line for people at the end of the training; empty: no sample was left out.
  std::string summary() const;

 private:
  int64_t count_ = 0;
};

}  // namespace heddle::tool
