// Names of devices: "kind:index", where ":0" may be left out. An operator may allow the host as well: "cuda:1|cpu" is on the host where it
// has no kernel on cuda:1.
#pragma once

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

namespace heddle {

// The one device that always exists.
inline constexpr const char* host_name = "cpu:0";

inline constexpr std::string_view or_host = "|cpu";

// True if an operator that says this may be on the host instead.
inline bool allows_host(std::string_view said) {
  return said.size() > or_host.size() && said.substr(said.size() - or_host.size()) == or_host;
}

// Returns "sim" for "sim:1", "sim" and "sim:1|cpu".
inline std::string device_kind(const std::string& device) {
  return device.substr(0, device.find_first_of(":|"));
}

// Returns the full name of the device that a node or an option names; that of `otherwise` when it names none.
inline std::string full_device_name(const std::string& said, const std::string& otherwise) {
  std::string name = said.empty() ? otherwise : said;
  if (allows_host(name)) name.resize(name.size() - or_host.size());
  return name.find(':') == std::string::npos ? name + ":0" : name;
}

// Returns what orders devices: by kind, then by number.
inline std::pair<std::string, int> device_order(const std::string& device) {
  const size_t colon = device.find(':');
  return {device_kind(device), colon == std::string::npos ? 0 : std::atoi(device.c_str() + colon + 1)};
}

inline bool is_host(const std::string& device) {
  return device_kind(device) == "cpu";
}

}  // namespace heddle
