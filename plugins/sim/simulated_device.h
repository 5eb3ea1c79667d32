// One simulated device, shared by the tables of this folder.
#pragma once

#include <memory>
#include <string>

#include "engine.h"
#include "memory.h"
#include "native.h"
#include "settings.h"

namespace sim {

namespace native {
const sim_native_table& functions();
}

struct Device {
  const sim_native_table* native = nullptr;  // first, as native.h requires; null: this kind has none
  Device(uint64_t bytes, bool unified, std::shared_ptr<Engine> made) : memory(bytes, unified), engine(std::move(made)) {}
  // Memory is allocated and freed when the device is idle, as drivers do.
  void* allocate(uint64_t bytes) {
    wait_until_idle();
    return memory.allocate(bytes);
  }
  void release(void* allocated) {
    wait_until_idle();
    memory.release(allocated);
  }
  Memory memory;
  const std::shared_ptr<Engine> engine;
  Settings settings;
  bool unified = false;
  bool peers = false;
  uint32_t guard_bytes = 0;
  std::string description;

 private:
  void wait_until_idle() {
    if (engine->wait_until_idle(memory)) settings.counts.inner_allocations.fetch_add(1, std::memory_order_relaxed);
  }
};

// Returns the open device of an index; null: it is not open. The last opened, if one was opened again. The caller must end calls that use a
// device before it is closed.
Device* open_device(int32_t index);

// The table of a kind of simulated devices, whose settings are HEDDLE_<KIND>_...: "sim", with all that a backend may have. `host`: the
// plugin's; it must stay valid.
heddle_device_backend simulated_backend(const char* kind, const heddle_host* host, const sim_native_table* native = nullptr);

}  // namespace sim
