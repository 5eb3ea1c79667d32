#include "options/device_options.h"

namespace heddle::tool {

void DeviceOptions::declare(CLI::App& app) {
  app.add_option("--device", device, "where operators that say nothing run")->type_name("D");
  app.add_option("--copies", copies, "copies between devices")->check(CLI::IsMember({"strict", "warn", "auto"}));
  app.add_option("--streams", streams, "streams per device")->check(CLI::Range(1, max_streams));
}

void DeviceOptions::apply(SessionOptions& options) const {
  if (!device.empty()) options.device = device;
  options.copies = copies == "strict" ? Copies::strict : copies == "auto" ? Copies::automatic : Copies::warn;
  options.streams = streams;
  options.communicators = {CommunicatorOptions()};  // whatever their names, they are this process alone
}

}  // namespace heddle::tool
