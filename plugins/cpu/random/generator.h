// The random numbers of the boundary under this plugin's own names.
#pragma once

#include "heddle/op/philox.h"

namespace heddle::cpu {

using plugin::normal_pair;
using plugin::Philox;
using plugin::unit_double;
using plugin::unit_float;

}  // namespace heddle::cpu
