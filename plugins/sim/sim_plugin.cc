// The simulated accelerator: it gives the runtime the properties of a device (memory that the host cannot touch, streams, events,
// callbacks, failures that come late) without one. It has no kernels of its own and runs the host's. docs/sim.md.
#include "heddle/op.h"
#include "launch.h"
#include "simulated_device.h"

HEDDLE_PLUGIN("sim", "1.0", plugin) {
  static heddle_device_backend backend;
  backend = sim::simulated_backend("sim", plugin.host(), &sim::native::functions());
  sim::set_host(*plugin.host());
  plugin.add(&backend);
}
