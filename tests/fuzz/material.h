// What the fuzzers start from: the operators of the CPU plugin, and small nets of all kinds.
#pragma once

#include <memory>

#include "fuzz/mutate.h"

namespace heddle::fuzz {

// The plugins under test: the CPU plugin of this build. Ends the process when it does not load.
std::shared_ptr<const RegistrySnapshot> cpu_registry();

// The sample net of tests/load, a convolution net, a net with a variable, and ONNX's own test models (node, pytorch-*) up to 16 KiB: as
// they are, with their integer inputs as constants, and with all inputs as constants.
Material make_material(const RegistrySnapshot& registry);

}  // namespace heddle::fuzz
