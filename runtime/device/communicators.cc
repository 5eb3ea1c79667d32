#include "device/communicators.h"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/exceptions.h"
#include "base/text/text.h"
#include "device/communicator_group.h"

namespace heddle {
namespace {

Status wrong(const CommunicatorOptions& c, std::string what, const char* hint) {
  const std::string of = c.name.empty() ? std::string("the communicator without a name") : shown_communicator(c.name);
  return {Code::invalid_argument, of + ' ' + std::move(what), hint};
}

}  // namespace

Status check_communicators(const std::vector<CommunicatorOptions>& declared) {
  std::set<std::string> names;
  for (const CommunicatorOptions& c : declared) {
    if (!names.insert(c.name).second) return wrong(c, "is declared twice", "declare each once");
    if (c.size < 1 || c.rank < 0 || c.rank >= c.size)
      return wrong(c, fmt::format("is rank {} of {}", c.rank, c.size), "ranks are 0 to size - 1");
    if (c.timeout_ns <= 0) return wrong(c, fmt::format("has a timeout of {} ns", c.timeout_ns), "give its operations some time");
    std::set<std::string> devices;
    for (const std::string& device : c.devices)
      if (!devices.insert(device).second) return wrong(c, fmt::format("has device {} twice", quoted(device)), "name each member once");
  }
  return {};
}

Communicators::Communicators(std::vector<CommunicatorOptions> declared, std::string device, std::shared_ptr<ResourceTable> resources)
    : declared_(std::move(declared)), device_(std::move(device)), resources_(std::move(resources)) {}

// Objects end with the session, and so do the tables of resources, and not with a thread that still has the group.
Communicators::~Communicators() {
  const MutexLock lock(mutex_);
  for (const auto& [name, group] : groups_) {
    std::vector<CommunicatorGroup::Object> objects;
    const MutexLock of_group(group->mutex);
    if (group->call) group->call->cancelled = true;
    objects.swap(group->objects);
  }
}

const CommunicatorOptions* declaration_of(const std::vector<CommunicatorOptions>& declared, const std::string& name) {
  for (const std::string& wanted : {name, std::string()})
    for (const CommunicatorOptions& c : declared)
      if (c.name == wanted) return &c;
  return nullptr;
}

int Communicators::rank_in(const std::string& name) const {
  const CommunicatorOptions* const found = declaration_of(declared_, name);
  return found ? found->rank : 0;
}

int Communicators::ranks_of(const std::string& name) const {
  const CommunicatorOptions* const found = declaration_of(declared_, name);
  return found ? found->size : 1;
}

std::vector<std::string> Communicators::devices_of(const std::string& name) const {
  const CommunicatorOptions* const found = declaration_of(declared_, name);
  return found ? found->devices : std::vector<std::string>();
}

Result<std::shared_ptr<CommunicatorGroup>> Communicators::find(const std::string& name, const std::vector<std::string>& devices) {
  const MutexLock lock(mutex_);
  if (const auto known = groups_.find(name); known != groups_.end()) return known->second;
  const CommunicatorOptions* const found = declaration_of(declared_, name);
  if (!found)
    return Status(Code::missing_resource, fmt::format("the session has no {}", shown_communicator(name)),
                  "say what it is in SessionOptions::communicators");
  auto group = std::make_shared<CommunicatorGroup>(*found, name, devices.empty() ? std::vector<std::string>{device_} : devices);
  groups_.emplace(name, group);
  return group;
}

void Communicators::leave(const std::string& why) noexcept {
  std::vector<std::shared_ptr<CommunicatorGroup>> groups;
  const auto list = [&] {
    const MutexLock lock(mutex_);
    for (const auto& [name, group] : groups_) groups.push_back(group);
  };
  if (!without_exceptions(list)) return;  // others find out at their time-out
  for (const std::shared_ptr<CommunicatorGroup>& group : groups)
    for (const CommunicatorGroup::Object& object : group->drop(true)) object.made->abort(why);  // plugins are called without a lock
}

}  // namespace heddle
