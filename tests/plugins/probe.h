// The object that probe::Probe calls from each of its tiles: its address is an attribute of the operator. The program that made it must be
// the one that runs the net.
#pragma once

#include <cstdint>

struct Probe {
  void (*at)(Probe* self, int64_t tile);  // any thread
};
