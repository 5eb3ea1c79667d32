// The device "bare": that of plugins/sim without anything that a backend may leave out, and with kernels of its own, like the smallest
// device of a vendor. Its settings are HEDDLE_BARE_..., as plugins/sim/backend.cc lists them.
#include "heddle/op.h"
#include "simulated_device.h"

using namespace heddle::plugin;

void add_bare_kernels(Builder& plugin);

HEDDLE_PLUGIN("bare", "1.0", plugin) {
  static heddle_device_backend backend;
  backend = sim::simulated_backend("bare", plugin.host());
  static const auto properties = backend.properties;
  backend.properties = [](void* device, heddle_device_properties* p, const heddle_call* call) {
    const heddle_status status = properties(device, p, call);
    p->flags = 0;
    p->alignment = 64;
    p->guard_bytes = 0;
    p->stream_classes = 0;
    return status;
  };
  backend.query = nullptr;
  backend.abort_stream = nullptr;
  backend.allocate_host = nullptr;
  backend.release_host = nullptr;
  backend.register_host = nullptr;
  backend.unregister_host = nullptr;
  backend.reaches = nullptr;
  backend.runs_kernels_of = nullptr;
  plugin.add(&backend);
  add_bare_kernels(plugin);
}
