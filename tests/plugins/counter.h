// The resource that awkward_provider publishes and awkward uses: a plain struct, agreed on by both plugins, unknown to the runtime.
#pragma once

#include <cstdint>

struct Counter {
  int64_t (*next)(Counter* self);  // any thread
};
