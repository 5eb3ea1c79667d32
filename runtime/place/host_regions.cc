#include "place/host_regions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/device_name.h"
#include "device/locations.h"
#include "place/place.h"
#include "plugin/abi_attributes.h"
#include "plugin/operator_cost.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

constexpr int reach = 4;                  // operators between one that fell back and one that may move, that one included
constexpr double work_of_a_copy = 8;      // bytes and operations that the host does while one byte is copied
constexpr int64_t small_bytes = 1 << 16;  // operators that declare no cost are light up to here

class Search {
 public:
  Search(const TypedNet& net, DeviceId device);
  std::vector<HostRegion> run(const std::vector<NodeId>& fallen_back);

 private:
  // A value that may cross: the nodes that make or read it where they run, and how many of those are on the device and elsewhere.
  struct Crossing {
    std::vector<NodeId> ends;
    int on_device = 0, elsewhere = 0;
    bool held_on_host = false;  // lies or is needed on the host wherever its ends run: counts once
    bool of_region = false;
  };
  enum class State : uint8_t { fixed, on_host, back };

  void connect(NodeId id);
  bool crosses(ValueId v) const;
  std::optional<double> light_work(NodeId id) const;
  void reach_from(const std::vector<NodeId>& fallen_back);
  void weigh();
  void give_back();
  HostRegion region_of(NodeId first);
  template <class Function>
  void each_crossing(NodeId id, const Function& function);
  int64_t bytes(ValueId v) const { return net_.type(v).byte_size(); }
  bool on_host(NodeId id) const { return states_[id.index] == State::on_host; }

  const TypedNet& net_;
  const DeviceId device_;
  const bool host_has_pointwise_;
  std::vector<Crossing> crossings_;   // indexed by ValueId
  std::vector<State> states_;         // indexed by NodeId
  std::vector<double> work_, price_;  // also by NodeId: on the host, as bytes copied; the price of going back to the device
  std::vector<NodeId> movable_;
};

// A known or constant value is on the device before the run; a variable fixes the place of the nodes that use it.
bool Search::crosses(ValueId v) const {
  if (!v.valid()) return false;
  const Value& value = net_.net[v];
  return value.kind != Value::Kind::constant && !value.variable.valid() && !net_.known[v.index];
}

Search::Search(const TypedNet& net, DeviceId device)
    : net_(net),
      device_(device),
      host_has_pointwise_(runs_pointwise(net, host_name)),
      crossings_(net.net.values.size()),
      states_(net.net.nodes.size(), State::fixed),
      work_(net.net.nodes.size(), 0),
      price_(net.net.nodes.size(), 0) {
  for (const ValueId v : net.net.inputs) crossings_[v.index].held_on_host = true;
  for (const ValueId v : net.net.outputs) crossings_[v.index].held_on_host = true;
  for (size_t i = 0; i < net.net.nodes.size(); ++i) connect(NodeId(i));
}

void Search::connect(NodeId id) {
  const Node& node = net_.net[id];
  if (is_known(net_, node)) return;  // it is folded away
  const auto add = [&](ValueId v, const heddle_port* port, uint32_t of_host) {
    if (!crosses(v)) return;
    Crossing& crossing = crossings_[v.index];
    if (!is_copy(node) && port && (port->flags & of_host))
      crossing.held_on_host = true;
    else if (crossing.ends.empty() || crossing.ends.back() != id)
      crossing.ends.push_back(id);
  };
  for (size_t k = 0; k < node.outputs.size(); ++k) add(node.outputs[k], node.schema->output_port(k), HEDDLE_PORT_HOST);
  for (size_t k = 0; k < node.inputs.size(); ++k)
    add(node.inputs[k], node.schema->input_port(k), HEDDLE_PORT_HOST | HEDDLE_PORT_SHAPE_OPERAND);
}

// Calls `function` once for each value of the node that crosses when the node moves.
template <class Function>
void Search::each_crossing(NodeId id, const Function& function) {
  const Node& node = net_.net[id];
  std::vector<ValueId> values;
  for (const std::vector<ValueId>* side : {&node.outputs, &node.inputs})
    for (const ValueId v : *side)
      if (crosses(v) && std::binary_search(crossings_[v.index].ends.begin(), crossings_[v.index].ends.end(), id)) values.push_back(v);
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  for (const ValueId v : values) function(v, crossings_[v.index]);
}

// Returns the operator's work on the host, or none if it may not move there.
std::optional<double> Search::light_work(NodeId id) const {
  const Node& node = net_.net[id];
  constexpr uint32_t stays = HEDDLE_TRAIT_IMPURE | HEDDLE_TRAIT_RANDOM | HEDDLE_TRAIT_COLLECTIVE;
  const bool is_free = node.device.empty() || allows_host(node.device);
  if (!is_free || node.placed != device_ || is_copy(node) || (node.schema->op->traits & stays)) return {};
  double may_cross = 0;
  for (const std::vector<ValueId>* side : {&node.inputs, &node.outputs})
    for (const ValueId v : *side) {
      if (v.valid() && (net_.type(v).dtype == DType::none || net_.net[v].variable.valid())) return {};
      if (crosses(v)) may_cross += static_cast<double>(bytes(v));
    }
  if (!runs_on(net_, node, host_name, host_has_pointwise_)) return {};
  if (node.schema->has_trait(HEDDLE_TRAIT_VIEW)) return 0;
  const Result<OperatorCost> cost = operator_cost(net_, node, AttributeTable(*node.schema, node.attributes));
  if (!cost.ok() || (!cost->flops && cost->bytes > small_bytes)) return {};
  const double flops = cost->flops.value_or(0);
  if (flops > may_cross) return {};
  return (flops + static_cast<double>(cost->bytes)) / work_of_a_copy;
}

void Search::reach_from(const std::vector<NodeId>& fallen_back) {
  std::vector<NodeId> from = fallen_back, next;
  std::vector<char> asked(states_.size(), 0);
  const auto look_at = [&](NodeId id) {
    if (!id.valid() || std::exchange(asked[id.index], 1)) return;
    const std::optional<double> work = light_work(id);
    if (!work) return;
    work_[id.index] = *work;
    states_[id.index] = State::on_host;
    next.push_back(id);
  };
  for (int step = 0; step < reach && !from.empty(); ++step) {
    next.clear();
    for (const NodeId id : from) {
      const Node& node = net_.net[id];
      for (const ValueId v : node.inputs)
        if (crosses(v)) look_at(net_.net[v].producer);
      for (const ValueId v : node.outputs)
        if (crosses(v))
          for (const NodeId reader : crossings_[v.index].ends) look_at(reader);
    }
    movable_.insert(movable_.end(), next.begin(), next.end());
    from = next;
  }
  std::sort(movable_.begin(), movable_.end());
}

// Counts the ends of the values that movable operators use, and the price of moving each of those operators back alone.
void Search::weigh() {
  for (Crossing& crossing : crossings_) {
    crossing.elsewhere = crossing.held_on_host ? 1 : 0;
    for (const NodeId end : crossing.ends) ++(on_host(end) || net_.net[end].placed != device_ ? crossing.elsewhere : crossing.on_device);
  }
  for (const NodeId id : movable_) {
    price_[id.index] = -work_[id.index];
    each_crossing(id, [&](ValueId v, const Crossing& crossing) {
      const auto all = static_cast<double>(bytes(v));
      if (crossing.on_device == 0 && crossing.elsewhere > 1) price_[id.index] += all;
      if (crossing.on_device > 0 && crossing.elsewhere == 1) price_[id.index] -= all;
    });
  }
}

// Prices only fall: for each value once when the first of its ends is on the device, and once when only one is left elsewhere.
void Search::give_back() {
  std::vector<NodeId> open;
  const auto settle = [&](NodeId id) {
    if (!on_host(id) || price_[id.index] > 0) return;
    states_[id.index] = State::back;
    open.push_back(id);
  };
  for (const NodeId id : movable_) settle(id);
  while (!open.empty()) {
    const NodeId gone = open.back();
    open.pop_back();
    each_crossing(gone, [&](ValueId v, Crossing& crossing) {
      const int fallen = (crossing.on_device++ == 0 ? 1 : 0) + (--crossing.elsewhere == 1 ? 1 : 0);
      if (fallen == 0) return;
      for (const NodeId end : crossing.ends) {
        price_[end.index] -= fallen * static_cast<double>(bytes(v));
        settle(end);
      }
    });
  }
}

// Takes all nodes left on the host that are connected with `first`. The saved bytes are 0 where it costs no less than on the device.
HostRegion Search::region_of(NodeId first) {
  HostRegion region;
  double work = 0;
  std::vector<ValueId> values;
  const auto take = [&](NodeId id) {
    if (!on_host(id)) return;
    states_[id.index] = State::fixed;
    region.nodes.push_back(id);
  };
  take(first);
  for (size_t i = 0; i < region.nodes.size(); ++i) {
    work += work_[region.nodes[i].index];
    each_crossing(region.nodes[i], [&](ValueId v, Crossing& crossing) {
      --crossing.elsewhere;
      if (std::exchange(crossing.of_region, true)) return;
      values.push_back(v);
      for (const NodeId end : crossing.ends) take(end);
    });
  }
  std::sort(region.nodes.begin(), region.nodes.end());
  // On the device, the region copies the values that are needed elsewhere; on the host, those that are needed on the device.
  for (const ValueId v : values) {
    const Crossing& crossing = crossings_[v.index];
    region.saved_bytes += bytes(v) * ((crossing.elsewhere > 0 ? 1 : 0) - (crossing.on_device > 0 ? 1 : 0));
  }
  if (static_cast<double>(region.saved_bytes) <= work) region.saved_bytes = 0;
  return region;
}

std::vector<HostRegion> Search::run(const std::vector<NodeId>& fallen_back) {
  reach_from(fallen_back);
  weigh();
  give_back();
  std::vector<HostRegion> regions;
  for (const NodeId id : movable_) {
    if (!on_host(id)) continue;
    HostRegion region = region_of(id);
    if (region.saved_bytes > 0) regions.push_back(std::move(region));
  }
  return regions;
}

}  // namespace

std::vector<HostRegion> host_regions(const TypedNet& net, DeviceId device, const std::vector<NodeId>& fallen_back) {
  if (fallen_back.empty()) return {};
  return Search(net, device).run(fallen_back);
}

}  // namespace heddle
