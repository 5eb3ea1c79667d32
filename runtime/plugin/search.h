// Finds and loads plugins.
#pragma once

#include "heddle/session.h"
#include "plugin/registry.h"

namespace heddle {

// Loads the plugins that the options name, and those that come with Heddle unless the options exclude them (RuntimeOptions has the order).
// Errors: those of Registry::load.
Status load_plugins(Registry& registry, const RuntimeOptions& options);

}  // namespace heddle
