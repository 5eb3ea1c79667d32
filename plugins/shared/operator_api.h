// The names of Heddle's operator API, in the namespace of shared plugin code.
#pragma once

#include "heddle/op.h"

namespace heddle::operators {

using namespace heddle::plugin;
using plugin::Status;  // tests use the runtime's own in the same files

}  // namespace heddle::operators
