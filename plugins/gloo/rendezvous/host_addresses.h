// The addresses of a host, looked up in bounded time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "heddle/op/plugin_status.h"

namespace heddle::rendezvous {

// Sets the numeric addresses of `host`, a name or an address itself, those of IPv4 first. Errors: device (it has none, or it was not found
// until `deadline`).
plugin::Status addresses_of(const std::string& host, std::chrono::steady_clock::time_point deadline, std::vector<std::string>* addresses);

}  // namespace heddle::rendezvous
