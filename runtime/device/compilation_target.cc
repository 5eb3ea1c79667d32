#include "device/compilation_target.h"

#include "base/device_name.h"

namespace heddle {

bool checks_plans_by_default() {
  return HEDDLE_CHECK_PLANS != 0;
}

CompilationTarget::CompilationTarget(const std::string& device, const Limits& net_limits, uint32_t threads)
    : default_device(full_device_name({}, device)), limits(net_limits), max_threads(threads) {}

CompilationTarget CompilationTarget::for_subnets() const {
  CompilationTarget target = *this;
  target.default_device = host_name;
  target.devices = nullptr;
  target.placed_ports.clear();
  target.own_ports = {};
  return target;
}

CompilationTarget CompilationTarget::for_subnets_on(const std::string& device, uint32_t own_inputs, uint32_t own_outputs) const {
  CompilationTarget target = *this;
  target.default_device = device;
  target.streams = 1;
  target.copy_streams = false;
  target.placed_ports.clear();
  target.own_ports = {own_inputs, own_outputs};
  return target;
}

}  // namespace heddle
