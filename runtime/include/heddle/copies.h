// Copies: what to do if a step needs a value on another device than the device that has the value.
#pragma once

#include <cstdint>

namespace heddle {

// This applies to values inside a net. Inputs and outputs of the net are on the host, unless SessionOptions::placed_ports says otherwise,
// and so are constants; where a device needs a copy of one of these, it is always made, without a warning.
enum class Copies : uint8_t {
  strict,     // an error
  warn,       // the value is copied in each run, and a warning reports it
  automatic,  // the value is copied in each run
};

}  // namespace heddle
