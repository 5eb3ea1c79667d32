// ContentReferences: where the writers put each content: into the net's file (null) or into another file, as a reference.
#pragma once

#include <functional>

#include "net/net.h"

namespace heddle {

using ContentReferences = std::function<const WeightReference*(const Content&)>;

// Keeps references as they were loaded.
inline const WeightReference* references_as_loaded(const Content& content) {
  return content.reference->file.empty() ? nullptr : &*content.reference;
}

}  // namespace heddle
