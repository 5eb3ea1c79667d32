// What probe::Probe calls from each of its tiles: the address of one is an attribute of the operator. The program that made it is the one
// that runs the net.
#pragma once

#include <cstdint>

struct Probe {
  void (*at)(Probe* self, int64_t tile);  // any thread
};
