#include "compile/resources.h"

#include <map>
#include <memory>
#include <mutex>

#include "base/device_name.h"
#include "base/text.h"
#include "plugin/host.h"

namespace heddle {

struct ResourceTable::State {
  struct Entry {
    std::shared_ptr<const LoadedPlugin> owner;
    std::shared_ptr<Device> device;  // stays open as long as the resource
    const heddle_resource* resource = nullptr;
    std::unique_ptr<LoadCall> call;  // the host it was made with, valid as long as it
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
  for (auto& [key, entry] : state_->entries) try {
      entry.resource->destroy(entry.object);
    } catch (...) {
      log_line(HEDDLE_LOG_WARNING, "resource " + quoted(entry.resource->name) + " threw an exception out of destroy");
    }
}

void* ResourceTable::find(const std::string& name, const std::string& device, const std::shared_ptr<Device>& opened, std::string& error) {
  const std::lock_guard lock(state_->mutex);
  const auto key = std::make_pair(name, device);
  if (const auto it = state_->entries.find(key); it != state_->entries.end()) return it->second.object;
  State::Entry entry;
  entry.device = opened;
  entry.resource = state_->registry->find_resource(name, device_kind(device), &entry.owner);
  if (!entry.resource) {
    error = "no loaded plugin publishes resource " + quoted(name) + " for " + quoted(device_kind(device));
    return nullptr;
  }
  entry.call = std::make_unique<LoadCall>();
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = entry.resource->create(&entry.call->abi, device.c_str(), opened ? opened->handle() : nullptr, &entry.object);
  } catch (...) {
    entry.call->error.text = "create threw an exception across the plugin boundary";
  }
  if (status != HEDDLE_OK || !entry.object) {
    error = "resource " + quoted(name) + " of plugin " + quoted(entry.owner->name) +
            " could not be made: " + plugin_error(Code::missing_resource, status, entry.call->error).diagnostic().message;
    return nullptr;
  }
  return state_->entries.emplace(key, std::move(entry)).first->second.object;
}

}  // namespace heddle
