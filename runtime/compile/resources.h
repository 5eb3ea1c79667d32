// ResourceTable: what plugins publish for the kernels of others.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"
#include "plugin/registry.h"

namespace heddle {

// Objects that kernels ask for by name, one of a name and device. Kept by the session and by plans whose steps may ask while they run.
// Thread-safe. A plugin's create runs on the thread that asks first, under no lock: other resources are found and made meanwhile, and it
// may ask for them itself; other threads that ask for the same one wait. What could not be made is not tried again. Destroyed last made
// first.
class ResourceTable {
 public:
  explicit ResourceTable(std::shared_ptr<const RegistrySnapshot> registry);
  ~ResourceTable();
  ResourceTable(const ResourceTable&) = delete;
  ResourceTable& operator=(const ResourceTable&) = delete;
  // Made on first use. `opened`: null on cpu. Errors: missing_resource (no plugin publishes it, it could not be made, it needs itself), or
  // out_of_memory and device_failed when that is why.
  Result<void*> find(const std::string& name, const std::string& device, const std::shared_ptr<Device>& opened);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
