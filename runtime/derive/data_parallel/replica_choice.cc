#include "derive/data_parallel/replica_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string_view>

#include "base/device_name.h"
#include "base/text/text.h"

namespace heddle {
namespace {

Status invalid(std::string what, const char* hint) {
  return {Code::invalid_argument, std::move(what), hint};
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Whether `name` is one of `names`, or begins as one of them does that ends with "*".
bool is_named(const std::string& name, const std::vector<std::string>& names) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& wanted) {
    return wanted == name || (wanted.ends_with('*') && name.starts_with(wanted.substr(0, wanted.size() - 1)));
  });
}

// Checks that each of `names` is one of `known`, and is there once.
Status check_names(const std::vector<std::string>& names, const std::vector<std::string>& known, const char* what) {
  std::set<std::string> seen;
  for (const std::string& name : names) {
    if (std::none_of(known.begin(), known.end(), [&](const std::string& one) { return is_named(one, {name}); }))
      return {Code::unknown_name, fmt::format("the net has no {} {}", what, quoted(name)), suggestion(name, known)};
    if (!seen.insert(name).second) return invalid(fmt::format("{} {} is named twice", what, quoted(name)), "name it once");
  }
  return {};
}

Status check_options(const Net& net, const DataParallelOptions& options, const std::vector<std::string>& devices) {
  if (options.ranks < 1) return invalid(fmt::format("there are {} ranks", options.ranks), "give their number, 1 or more");
  if (options.communicator.empty()) return invalid("the communicator of the replicas has no name", "name it");
  if (options.bucket_bytes < 0) return invalid(fmt::format("buckets have {} bytes", options.bucket_bytes), "give 0 or more");
  std::set<std::string> seen;
  for (const std::string& device : devices) {
    if (device.empty()) return invalid("a device of a replica has no name", "name it, as in sim:0");
    if (!seen.insert(full_device_name(device, "")).second)
      return invalid(fmt::format("device {} is to have two replicas", quoted(device)), "name each device once");
    if (allows_host(device))
      return invalid(fmt::format("a replica is on {}", quoted(device)),
                     "name the device alone: what it has no kernel for goes to the host");
    if (device_kind(device) != device_kind(devices[0]))
      return invalid(fmt::format("replicas are on {} and {}", quoted(devices[0]), quoted(device)), "name devices of one kind");
  }
  if (devices.size() > 1 && is_host(devices[0]))
    return invalid("several replicas are on the host", "give each rank a session, and say how many ranks there are");
  std::vector<std::string> inputs, variables;
  for (const ValueId input : net.inputs) inputs.push_back(net[input].name);
  for (const Variable& variable : net.variables) variables.push_back(variable.name);
  HEDDLE_CHECK(check_names(options.whole, inputs, "input"));
  HEDDLE_CHECK(check_names(options.single, variables, "variable"));
  for (const Variable& variable : net.variables)
    if (!variable.replica_of.empty())
      return invalid(fmt::format("variable {} is a replica already", quoted(variable.name)), "give a net that has none");
  for (const Node& node : net.nodes)
    if (!node.device.empty() && !is_host(node.device))
      return invalid(
          fmt::format("operator {} is on {}, and the replicas are on {}", quoted(node.name), quoted(node.device), join(devices, ", ")),
          "leave its device out, or let it be on cpu in all replicas");
  return {};
}

}  // namespace

std::string place_of_replica(const std::string& device) {
  return is_host(device) ? device : device + std::string(or_host);
}

bool ReplicaChoice::is_on_host(const Net& net, const Node& node) const {
  if (is_host(node.device)) return true;
  return std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
    return input.valid() && net[input].variable.valid() && single[net[input].variable.index] && net[input].variable != net.step_counter;
  });
}

Result<ReplicaChoice> choose_replicas(const Net& net, const DataParallelOptions& options) {
  ReplicaChoice choice;
  choice.devices = options.devices.empty() ? std::vector<std::string>{"cpu"} : options.devices;
  HEDDLE_CHECK(check_options(net, options, choice.devices));
  choice.has_peers = choice.devices.size() > 1 || options.ranks > 1;
  std::vector<char> read(net.variables.size()), elsewhere(net.variables.size());
  for (const Node& node : net.nodes)
    for (const ValueId input : node.inputs) {
      if (!input.valid() || !net[input].variable.valid()) continue;
      read[net[input].variable.index] = 1;
      if (!is_host(node.device)) elsewhere[net[input].variable.index] = 1;
    }
  for (uint32_t v = 0; v < net.variables.size(); ++v) {
    const Variable& variable = net.variables[v];
    choice.single.push_back(net.step_counter == VariableId(v) || is_named(variable.name, options.single) || (read[v] && !elsewhere[v]));
    if (choice.single[v] && choice.devices.size() > 1 && variable.first != variable.last)
      return invalid(fmt::format("variable {} is updated by operator {}, and there is one for all replicas", quoted(variable.name),
                                 quoted(net[net[variable.last].producer].name)),
                     "let each replica have its own, off the host");
  }
  choice.split.assign(net.values.size(), 0);
  for (const ValueId input : net.inputs) {
    const DeclaredType& type = net[input].type;
    choice.split[input.index] = !(type.ranked && type.dims.empty()) && !contains(options.whole, net[input].name);
  }
  choice.of_batch = choice.split;
  for (const Node& node : net.nodes) {
    const bool depends =
        std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId i) { return i.valid() && choice.of_batch[i.index]; });
    for (const ValueId output : node.outputs)
      if (depends && output.valid()) choice.of_batch[output.index] = 1;
  }
  return choice;
}

}  // namespace heddle
