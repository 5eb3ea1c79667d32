// What operator authors use of Heddle, in the namespace of what plugins share.
#pragma once

#include "heddle/op.h"

namespace heddle::operators {

using namespace heddle::plugin;

}  // namespace heddle::operators
