#include "device/device_manager.h"

#include <fmt/format.h>

#include <new>

#include "base/device_name.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "base/threads/mutex.h"

namespace heddle {
namespace {

struct Found {
  const heddle_device_backend* backend = nullptr;
  std::shared_ptr<const LoadedPlugin> plugin;
  int32_t index = 0;
};

Result<Found> find(const RegistrySnapshot& registry, const std::string& name) {
  const auto none = [&](const std::string& why, const Hint& hint) {
    return Status(Code::no_such_device, fmt::format("device {} does not exist: {}", quoted(name), why), hint);
  };
  const std::string kind = device_kind(name);
  Found found;
  found.backend = registry.find_device(kind, &found.plugin);
  if (!found.backend)
    return none(fmt::format("no loaded plugin brings devices of kind {}", quoted(kind)),
                hint_with("load its plugin with ", option_names::plugins, ", or choose cpu"));
  int64_t index = 0;
  const std::string digits = name.substr(kind.size() + 1);
  if (!parse_int(digits, &index) || index < 0 || index > INT32_MAX || digits != fmt::to_string(index))  // a device has one name
    return none("its index is not a number", fmt::format("write it like {}:0", kind));
  const DeviceCount counted = count_devices(*found.backend);
  const int32_t count = counted.count;
  if (count == 0) return none(counted.reason, "choose cpu");
  if (index >= count)
    return none(fmt::format("there are {} of kind {}", count, quoted(kind)), fmt::format("the last is {}:{}", kind, count - 1));
  found.index = static_cast<int32_t>(index);
  return found;
}

}  // namespace

DeviceCount count_devices(const heddle_device_backend& backend) {
  HostCall call;
  DeviceCount counted;
  try {
    if (backend.count(&counted.count, &call) != HEDDLE_OK) counted.count = 0;
  } catch (const std::bad_alloc&) {
    throw;  // an exception must not be taken for absent devices
  } catch (...) {
    return {0, "the backend threw an exception when it was asked for its devices"};
  }
  if (counted.count <= 0) counted = {0, call.error.text.empty() ? "the backend found none and gave no reason" : call.reason()};
  return counted;
}

Status check_device(const RegistrySnapshot& registry, const std::string& name) {
  return find(registry, name).status();
}

Status describe_devices(const RegistrySnapshot& registry, const std::string& kind, const std::string& text) {
  std::shared_ptr<const LoadedPlugin> plugin;
  const heddle_device_backend* const backend = registry.find_device(kind, &plugin);
  if (!backend)
    return {Code::no_such_device, fmt::format("no loaded plugin brings devices of kind {}", quoted(kind)),
            hint_with("load its plugin with ", option_names::plugins)};
  if (!backend->describe)
    return {Code::unsupported, fmt::format("the backend of devices of kind {} takes no description of devices", quoted(kind)),
            "make plans for those that are here"};
  HostCall call;
  try {
    if (backend->describe(text.data(), text.size(), &call) == HEDDLE_OK) return {};
  } catch (...) {
    return {Code::device_failed, fmt::format("the backend of kind {} threw an exception when it was told of devices", quoted(kind))};
  }
  return {Code::invalid_argument, fmt::format("devices of kind {} could not be described: {}", quoted(kind), call.reason()),
          "see docs/cuda.md for a description"};
}

Result<std::shared_ptr<Device>> DeviceManager::open(const RegistrySnapshot& registry, const std::string& name) {
  // Opens under the lock: two callers at once get one device.
  const MutexLock lock(mutex_);
  if (const auto it = devices_.find(name); it != devices_.end()) {
    if (!it->second->lost()) return it->second;
    devices_.erase(it);
  }
  HEDDLE_TRY(const Found found, find(registry, name));
  HEDDLE_TRY(std::shared_ptr<Device> device, Device::open(found.plugin, *found.backend, found.index, outstanding_));
  devices_.emplace(name, device);
  return device;
}

void DeviceManager::drop(const std::string& plugin) {
  const MutexLock lock(mutex_);
  std::erase_if(devices_, [&](const auto& entry) {
    const bool goes = entry.second->plugin().name == plugin;
    if (goes) entry.second->retire();
    return goes;
  });
}

}  // namespace heddle
