// --device, --copies and --streams, and what reports say of devices.
#pragma once

#include <string>

#include "common/command.h"
#include "compile/plan.h"

namespace heddle::tool {

struct DeviceOptions {
  std::string device, copies = "warn";
  int streams = 1;
  void declare(CLI::App& app);
  void apply(SessionOptions& options) const;
};

// By device: {"cpu": of_device(memory of the host, 0), "cuda:0": of_device(..., 1), ...}.
template <class Function>
Json devices_json(const Plan& plan, Function&& of_device) {
  Json devices = {{"cpu", of_device(plan.memory, uint8_t{0})}};
  for (size_t d = 0; d < plan.devices.size(); ++d)
    devices[plan.devices[d].device->name()] = of_device(plan.devices[d].memory, static_cast<uint8_t>(d + 1));
  return devices;
}

}  // namespace heddle::tool
