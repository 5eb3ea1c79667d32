// What happens where a value is needed on another device than it lies.
#pragma once

#include <cstdint>

namespace heddle {

// Inputs, outputs and constants of a net, which begin or end on the host, are always copied without a word.
enum class Copies : uint8_t {
  strict,     // it is an error
  warn,       // it is copied in each run, and a warning says so
  automatic,  // it is copied in each run
};

}  // namespace heddle
