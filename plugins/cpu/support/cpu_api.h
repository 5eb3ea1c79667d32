// The names of Heddle's operator API and of shared plugin code, in this plugin's own namespace.
#pragma once

#include "shared/operator_api.h"

namespace heddle::cpu {

using namespace heddle::plugin;
using namespace heddle::operators;

}  // namespace heddle::cpu
