// UpdateIndices: checks the indices that the updates of a plan read before the first update writes anything. An update that refused an
// index later would leave variables half-updated, by the updates before it or for all that the run can know.
//
// Covers only indices that lie on the host and are produced before the update phase: no others can be checked in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/index_check.h"
#include "run/step_contexts.h"

namespace heddle {

class UpdateIndices {
 public:
  explicit UpdateIndices(const Plan& plan);
  bool any() const { return !steps_.empty(); }
  struct Outside {
    uint32_t step = 0;
    std::string text;
  };
  // Returns an index that is outside of what it indexes. REQUIRES: all steps before the update phase are done.
  std::optional<Outside> find(const StepContexts& steps) const;

 private:
  std::vector<CheckedInput> steps_;
};

}  // namespace heddle
