#include <map>
#include <mutex>

#include "base/text.h"
#include "compile/compile.h"

namespace heddle {

struct ResourceTable::State {
  struct Entry {
    std::shared_ptr<const LoadedPlugin> owner;
    const heddle_resource* resource = nullptr;
    void* object = nullptr;
  };
  std::mutex mutex;
  std::shared_ptr<const RegistrySnapshot> registry;
  std::map<std::pair<std::string, std::string>, Entry> entries;
};

ResourceTable::ResourceTable(std::shared_ptr<const RegistrySnapshot> registry) : state_(std::make_unique<State>()) {
  state_->registry = std::move(registry);
}

ResourceTable::~ResourceTable() {
  for (auto& [key, entry] : state_->entries)
    if (entry.object && entry.resource->destroy) entry.resource->destroy(entry.object);
}

void* ResourceTable::find(const std::string& name, const std::string& device, std::string& error) {
  const std::lock_guard lock(state_->mutex);
  const auto key = std::make_pair(name, device);
  if (const auto it = state_->entries.find(key); it != state_->entries.end()) return it->second.object;
  State::Entry entry;
  entry.resource = state_->registry->find_resource(name, device_kind(device), &entry.owner);
  if (!entry.resource) {
    error = "no loaded plugin publishes resource " + quoted(name) + " for " + quoted(device_kind(device));
    return nullptr;
  }
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = entry.resource->create(base_host(), device.c_str(), nullptr, &entry.object);
  } catch (...) {
    status = HEDDLE_ERROR_INTERNAL;
  }
  if (status != HEDDLE_OK || !entry.object) {
    error = "resource " + quoted(name) + " of plugin " + quoted(entry.owner->name) + " could not be made (status " +
            std::to_string(status) + ")";
    return nullptr;
  }
  return state_->entries.emplace(key, std::move(entry)).first->second.object;
}

}  // namespace heddle
