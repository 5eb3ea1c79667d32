// Call services for kernels that are made alone, without a net around them.
#pragma once

#include <span>
#include <string>

#include "plugin/host.h"

namespace heddle::testing {

class NoServices : public CallServices {
 public:
};

}  // namespace heddle::testing
