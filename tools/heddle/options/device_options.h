// --device, --copies and --streams, and the output about devices in reports.
#pragma once

#include <string>

#include "common/command.h"
#include "heddle/session.h"

namespace heddle::tool {

struct DeviceOptions {
  std::string device, copies = "warn";
  int streams = 1;
  void declare(CLI::App& app);
  void apply(SessionOptions& options) const;
};

// By device: {"cpu": of_device(memory of the host, 0), "cuda:0": of_device(..., 1), ...}.
template <class Function>
Json devices_json(const PlanInfo& plan, Function&& of_device) {
  Json devices = Json::object();
  for (size_t d = 0; d < plan.memory.size(); ++d) devices[plan.memory[d].device] = of_device(plan.memory[d], d);
  return devices;
}

}  // namespace heddle::tool
