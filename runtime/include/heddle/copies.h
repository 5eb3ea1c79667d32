// Copies: how to treat a value that is needed on another device than the one it is on.
#pragma once

#include <cstdint>

namespace heddle {

// Inputs, outputs and constants of a net begin or end on the host and are always copied, without a warning.
enum class Copies : uint8_t {
  strict,     // an error
  warn,       // the value is copied in each run, and a warning reports it
  automatic,  // the value is copied in each run
};

}  // namespace heddle
