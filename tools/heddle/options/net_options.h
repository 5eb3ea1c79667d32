// The options of commands that make a plan of a net without running it.
#pragma once

#include <string>
#include <vector>

#include "options/device_options.h"
#include "options/limit_options.h"
#include "options/net_choice.h"

namespace heddle::tool {

struct NetOptions {
  std::string net;
  NetChoice choice;
  std::vector<std::string> files, shapes, symbols;  // --input, --shape, --symbol
  DeviceOptions devices;
  LimitOptions limits;

  // The caller declares the argument for the net itself.
  void declare(CLI::App& app);
  Result<SessionOptions> session_options() const;
};

}  // namespace heddle::tool
