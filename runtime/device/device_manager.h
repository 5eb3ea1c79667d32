// DeviceManager: the devices that a runtime has opened, each once.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/threads/mutex.h"
#include "device/device.h"
#include "device/outstanding_work.h"
#include "heddle/device_plugin.h"
#include "heddle/status.h"
#include "plugin/registry.h"

namespace heddle {

// The number of devices that a backend has; if there are none, the reason.
struct DeviceCount {
  int32_t count = 0;
  std::string reason;
};
DeviceCount count_devices(const heddle_device_backend& backend);

// Checks that a device of that full name ("cuda:1") exists, without opening it. Errors: no_such_device with the reason: no plugin brings
// the kind, the backend found none and why, or it has fewer.
Status check_device(const RegistrySnapshot& registry, const std::string& name);

// Makes the backend of that kind offer the devices that `text` describes, instead of those of this machine, for the rest of the process
// (heddle_device_backend::describe). Errors: no_such_device, no plugin brings the kind; unsupported, its backend knows no such devices;
// invalid_argument with the backend's reason.
Status describe_devices(const RegistrySnapshot& registry, const std::string& kind, const std::string& text);

// Thread-safe. A device stays open until the manager is destroyed or its plugin is dropped, and as long as anything made on it exists.
class DeviceManager {
 public:
  // `outstanding` takes the copies that the devices give up; never null.
  explicit DeviceManager(std::shared_ptr<OutstandingWork> outstanding = std::make_shared<OutstandingWork>())
      : outstanding_(std::move(outstanding)) {}
  // Errors: as check_device and Device::open. Opening is tried again at the next call for a device that failed to open.
  Result<std::shared_ptr<Device>> open(const RegistrySnapshot& registry, const std::string& name);
  // Forgets the devices of a plugin that is about to be unloaded.
  void drop(const std::string& plugin);

 private:
  const std::shared_ptr<OutstandingWork> outstanding_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<Device>> devices_ HEDDLE_GUARDED_BY(mutex_);
};

}  // namespace heddle
