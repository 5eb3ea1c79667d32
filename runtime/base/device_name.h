// Names of devices: "kind:index", where ":0" may be left out.
#pragma once

#include <string>

namespace heddle {

// The one device that always exists.
inline constexpr const char* host_name = "cpu:0";

// Returns "cpu" for "cpu:0"; the whole text when there is no colon.
inline std::string device_kind(const std::string& device) {
  return device.substr(0, device.find(':'));
}

// Returns the full name of the device that a node or an option names; that of `otherwise` when it names none.
inline std::string full_device_name(const std::string& said, const std::string& otherwise) {
  const std::string& name = said.empty() ? otherwise : said;
  return name.find(':') == std::string::npos ? name + ":0" : name;
}

inline bool is_host(const std::string& device) {
  return device_kind(device) == "cpu";
}

}  // namespace heddle
