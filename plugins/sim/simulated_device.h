// One simulated device, as the tables of this folder see it.
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
  const sim_native_table* native = nullptr;  // first, as native.h says; null: this kind has none
  Device(uint64_t bytes, bool unified, std::shared_ptr<Engine> made) : memory(bytes, unified), engine(std::move(made)) {}
  // Memory is given and taken when the device is idle, as drivers do.
  void* allocate(uint64_t bytes) {
    engine->wait_until_idle(memory);
    return memory.allocate(bytes);
  }
  void release(void* allocated) {
    engine->wait_until_idle(memory);
    memory.release(allocated);
  }
  Memory memory;
  const std::shared_ptr<Engine> engine;
  Settings settings;
  bool unified = false;
  bool peers = false;
  uint32_t guard_bytes = 0;
  std::string description;
};

// Those that are open, by index; null: it is not. The last opened, where one was opened again. A call that uses one ends before it is
// closed, which is the caller's promise.
Device* open_device(int32_t index);

// The table of a kind of simulated devices, whose settings are HEDDLE_<KIND>_...: "sim", with all that a backend may have. `host`: the
// plugin's, which stays.
heddle_device_backend simulated_backend(const char* kind, const heddle_host* host, const sim_native_table* native = nullptr);

}  // namespace sim
