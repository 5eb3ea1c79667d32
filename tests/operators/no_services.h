// Call services for kernels that are made alone, without a net around them.
#pragma once

#include <span>
#include <string>

#include "plugin/host.h"

namespace heddle::testing {

// Resources are never made: kernels that need one when they run are only prepared.
class NoServices : public CallServices {
 public:
  Result<uint32_t> need(const heddle_resource_need&) override { return uint32_t{0}; }
};

}  // namespace heddle::testing
