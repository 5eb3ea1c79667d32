// UpdateIndices: what the updates of a plan read indices from is looked at before the first of them writes anything. An update that
// refused an index later than that would leave variables half-updated, by the updates before it or for all that the run can know.
//
// Only what lies on the host and is made before the tail: nothing else can be looked at in time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "compile/plan.h"
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
  // When all before the tail is done: an index that is none of those of what it indexes.
  std::optional<Outside> find(const StepContexts& steps) const;

 private:
  struct Checked {
    uint32_t step = 0;
    IndexInput indices;
  };
  std::vector<Checked> steps_;
};

}  // namespace heddle
