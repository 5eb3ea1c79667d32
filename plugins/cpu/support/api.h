// What operator authors use of Heddle, in this plugin's own namespace.
#pragma once

#include "heddle/op.h"

namespace heddle::cpu {

using namespace heddle::plugin;

}  // namespace heddle::cpu
