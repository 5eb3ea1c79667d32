// The Evaluator over the CPU kernels of the loaded plugins.
#pragma once

#include <memory>

#include "net/evaluator.h"
#include "plugin/registry.h"

namespace heddle {

std::unique_ptr<Evaluator> make_registry_evaluator(std::shared_ptr<const RegistrySnapshot> registry);

}  // namespace heddle
