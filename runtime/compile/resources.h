// ResourceTable: what plugins publish for the kernels of others.
#pragma once

#include <memory>
#include <string>

#include "device/device.h"
#include "plugin/registry.h"

namespace heddle {

// Session-long objects that kernels ask for by name. Thread-safe.
class ResourceTable {
 public:
  explicit ResourceTable(std::shared_ptr<const RegistrySnapshot> registry);
  ~ResourceTable();
  ResourceTable(const ResourceTable&) = delete;
  ResourceTable& operator=(const ResourceTable&) = delete;
  // Made on first use; null with a sentence in `error` when nobody publishes it or making it failed.
  // `opened`: null on cpu.
  void* find(const std::string& name, const std::string& device, const std::shared_ptr<Device>& opened, std::string& error);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace heddle
