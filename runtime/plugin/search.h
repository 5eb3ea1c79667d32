// Where plugins are looked for.
#pragma once

#include "heddle/session.h"
#include "plugin/registry.h"

namespace heddle {

// Loads what the options name, and what comes with Heddle unless they say no (RuntimeOptions has the order). Errors: those of
// Registry::load.
Status load_plugins(Registry& registry, const RuntimeOptions& options);

}  // namespace heddle
