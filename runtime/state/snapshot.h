// Snapshot: copies of all variables as they are at one point between updates, made while runs go on.
//
// A snapshot has a turn with the variables only while it is registered. After that, a run that is about to write a variable copies it
// first if no thread has copied it yet. So a run waits only for the copies of variables that it writes itself. A Snapshot is
// registered in a VariableStore while it is made; the store's mutex guards the states of the parts.
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
