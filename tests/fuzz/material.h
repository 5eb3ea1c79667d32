// The fuzzers' starting material: the operators of the CPU plugin, and small nets of all kinds.
#pragma once

#include <memory>

#include "fuzz/mutate.h"

namespace heddle::fuzz {

// Loads the plugins under test: the CPU plugin of this build. Ends the process if it does not load.
std::shared_ptr<const RegistrySnapshot> cpu_registry();

// Makes the seeds: the sample net of tests/load, a convolution net, a net with a variable, and ONNX's own test models (node, pytorch-*) up
// to 16 KiB: unchanged, with their integer inputs as constants, and with all inputs as constants.
Material make_material(const RegistrySnapshot& registry);

}  // namespace heddle::fuzz
