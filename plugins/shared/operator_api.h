// What operator authors use of Heddle, in the namespace of what plugins share.
#pragma once

#include "heddle/op.h"

namespace heddle::operators {

using namespace heddle::plugin;
using plugin::Status;  // tests know the runtime's own beside it

}  // namespace heddle::operators
