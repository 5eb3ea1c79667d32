// Snapshot: copies of all variables as they are at one point between updates, made while runs go on.
//
// The turn with the variables is needed only to register it: from then on whoever is about to write a variable copies it first, unless that
// is done. So nobody waits for more than the copies of variables that it writes itself. Part of a VariableStore, under whose mutex the
// states of parts change.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "heddle/status.h"
#include "net/net.h"

namespace heddle {

struct Snapshot {
  enum class State : uint8_t { waiting, copying, done };
  struct Part {
    State state = State::waiting;
    std::shared_ptr<const Blob> blob;
    std::byte* place = nullptr;
  };
  std::vector<Part> parts;  // by variable
  Status failed;            // of the first copy that failed
};

}  // namespace heddle
