// Order and dependences of the steps: data, control, and the hazards of variables (a reader of one version runs before the step that
// overwrites it). With commit=late the updates of variables, and the steps that depend on them, form the update phase, the tail of the
// plan; otherwise each is made as soon as it can be, so that what it reads, a gradient, needs no memory any longer. All collectives of one
// device, whatever their communicators, are one chain in the given order: devices that run them in different orders wait for each other for
// ever (the rule of NCCL for several communicators). The members of a group follow each other directly: one call launches all, so that what
// one of them waits for all do, and what follows one follows all.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "base/text/text.h"
#include "compile/draft.h"
#include "resolve/collectives.h"
#include "resolve/updates.h"

namespace heddle::compiling {
namespace {

class Orderer {
 public:
  explicit Orderer(Draft& draft) : draft_(draft), net_(draft.typed.net), position_(net_.nodes.size(), UINT32_MAX) {}
  Status run();

 private:
  void add_edge(uint32_t from, uint32_t to) {
    if (from != to) edges_[from].push_back(to);
  }
  // Returns the running node that produces `value`, through views; invalid for sources.
  NodeId producer(ValueId value) const;
  void data_edges();
  Status hazard_edges();
  void collective_edges();
  void find_groups();
  void mark_tail();
  std::vector<uint32_t> crossings() const;
  std::vector<std::vector<uint32_t>> edges_with_groups() const;
  Status sort();
  Status what_is_circular(const std::vector<uint32_t>& place) const;

  Draft& draft_;
  const Net& net_;
  std::vector<uint32_t> position_;  // by NodeId: position in the given order
  std::vector<std::vector<uint32_t>> edges_;
  std::vector<char> tail_;
  std::vector<std::vector<uint32_t>> groups_;  // positions of the members, ascending
  std::vector<int32_t> group_of_;              // by position; -1: none
};

NodeId Orderer::producer(ValueId value) const {
  while (value.valid() && net_[value].producer.valid()) {
    const NodeId id = net_[value].producer;
    if (draft_.nodes[id.index].uploaded) return {};
    if (!draft_.nodes[id.index].view) return id;
    value = net_[id].inputs[0];
  }
  return {};
}

void Orderer::data_edges() {
  for (const NodeId id : draft_.order) {
    const uint32_t to = position_[id.index];
    for (const ValueId v : net_[id].inputs) {
      const NodeId from = v.valid() ? producer(v) : NodeId();
      if (from.valid()) add_edge(position_[from.index], to);
    }
    for (const NodeId before : net_[id].control)
      if (position_[before.index] != UINT32_MAX) add_edge(position_[before.index], to);
  }
}

// Adds the edges of variables: readers of version k must run before the writer of version k + 1.
Status Orderer::hazard_edges() {
  if (net_.variables.empty()) return {};
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> readers(net_.variables.size());  // version, position
  std::vector<std::vector<std::pair<uint32_t, uint32_t>>> writers(net_.variables.size());  // version written, position
  // Finds the version of the variable whose bytes a value is, through views.
  const auto version_of = [&](ValueId v, uint32_t* variable, uint32_t* version) {
    for (;;) {
      const Value& value = net_[v];
      if (value.kind == Value::Kind::variable) {
        *variable = value.variable.index;
        *version = value.version;
        return true;
      }
      if (!value.producer.valid() || !draft_.nodes[value.producer.index].view) return false;
      v = net_[value.producer].inputs[0];
    }
  };
  uint32_t variable = 0, version = 0;
  for (const NodeId id : draft_.order) {
    const uint32_t at = position_[id.index];
    for (const ValueId v : net_[id].inputs)
      if (v.valid() && version_of(v, &variable, &version)) readers[variable].emplace_back(version, at);
    for (const ValueId v : net_[id].outputs)
      if (v.valid() && net_[v].kind == Value::Kind::variable) writers[net_[v].variable.index].emplace_back(net_[v].version, at);
  }
  for (size_t i = 0; i < readers.size(); ++i)
    for (const auto& [written, writer] : writers[i]) {
      int taken = 0;  // by the update itself, which writes one element while it may read another
      for (const auto& [read, reader] : readers[i]) {
        if (read + 1 != written) continue;
        add_edge(reader, writer);
        if (reader == writer && ++taken > 1)
          return draft_.at(draft_.order[writer],
                           {Code::hazard, fmt::format("takes variable {} at two inputs and overwrites it", quoted(net_.variables[i].name)),
                            "give one of them a value that is computed of it"});
      }
    }
  return {};
}

// The order is that of the net: it depends neither on threads nor on what else runs where. A late step on a device comes after the
// collectives there that it follows in the net, since it may wait for the device (compile/fences.cc).
void Orderer::collective_edges() {
  std::map<uint8_t, uint32_t> last;  // by device
  for (uint32_t i = 0; i < draft_.order.size(); ++i) {
    const NodeId id = draft_.order[i];
    const NodeDraft& d = draft_.nodes[id.index];
    if (!has_collectives(net_[id])) {
      if (const auto at = last.find(d.device); d.late && d.device != 0 && at != last.end()) add_edge(at->second, i);
      continue;
    }
    const auto [at, first] = last.try_emplace(draft_.nodes[id.index].device, i);
    if (!first) add_edge(std::exchange(at->second, i), i);
  }
}

void Orderer::mark_tail() {
  tail_.assign(draft_.order.size(), 0);
  for (const NodeId id : draft_.order)
    if (updates_variable(net_, net_[id])) {
      tail_[position_[id.index]] = 1;
      draft_.plan.has_variable_updates = true;
    }
  if (!draft_.options.commit_late) tail_.assign(draft_.order.size(), 0);
  // Edges of data run forward in the given order; hazard edges end in updates, which are already marked.
  for (size_t i = 0; i < tail_.size(); ++i)
    if (tail_[i])
      for (const uint32_t next : edges_[i]) tail_[next] = 1;
}

// Counts how often, on the longest way to each step, a device waits for the host. Streams work in plan order: steps that need the host less
// often come before steps that need it more, so that no stream waits for the host while its queue has work that need not.
std::vector<uint32_t> Orderer::crossings() const {
  std::vector<uint32_t> most(draft_.order.size(), 0);
  const auto on_device = [&](size_t at) { return draft_.nodes[draft_.order[at].index].device != 0; };
  for (size_t i = 0; draft_.locations && i < most.size(); ++i)
    for (const uint32_t next : edges_[i])
      if (next > i) most[next] = std::max(most[next], most[i] + (!on_device(i) && on_device(next) ? 1 : 0));
  return most;
}

void Orderer::find_groups() {
  group_of_.assign(draft_.order.size(), -1);
  for (const std::vector<NodeId>& group : draft_.groups) {
    std::vector<uint32_t>& members = groups_.emplace_back();
    for (const NodeId id : group) {
      members.push_back(position_[id.index]);
      group_of_[members.back()] = static_cast<int32_t>(groups_.size() - 1);
    }
    std::sort(members.begin(), members.end());
  }
}

// The edges, those that groups add among them; without repeats.
std::vector<std::vector<uint32_t>> Orderer::edges_with_groups() const {
  std::vector<std::vector<uint32_t>> all = edges_;
  for (uint32_t from = 0; from < edges_.size() && !groups_.empty(); ++from)
    for (const uint32_t to : edges_[from]) {
      const int32_t source = group_of_[from], target = group_of_[to];
      if (source < 0 && target < 0) continue;
      const uint32_t launched = source < 0 ? from : groups_[static_cast<size_t>(source)].back();
      if (target < 0)
        all[launched].push_back(to);
      else
        for (const uint32_t member : groups_[static_cast<size_t>(target)]) all[launched].push_back(member);
    }
  for (const std::vector<uint32_t>& members : groups_)
    for (const uint32_t member : members)
      if (member != members.back()) all[member].push_back(members.back());
  for (auto& list : all) {
    std::sort(list.begin(), list.end());
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return all;
}

// Names a step that could not be placed.
Status Orderer::what_is_circular(const std::vector<uint32_t>& place) const {
  for (size_t i = 0; i < place.size(); ++i)
    if (place[i] == UINT32_MAX && group_of_[i] >= 0)
      return draft_.at(draft_.order[i], {Code::invalid_argument,
                                         "depends on a collective that is launched together with it on another device, or other devices "
                                         "have it and the collectives of another communicator in another order",
                                         "give all devices of a communicator the same collectives in the same order"});
  for (size_t i = 0; i < place.size(); ++i)
    if (place[i] == UINT32_MAX)
      return draft_.at(draft_.order[i], {Code::hazard, "reads a version of a variable after the operator that overwrites it",
                                         "read the newer version, or copy the older one first"});
  return {};
}

// Kahn's algorithm: first all steps outside the tail, fewest crossings first, then updates, and collectives of the host, which others are
// done beside, then lowest position.
Status Orderer::sort() {
  const size_t count = draft_.order.size();
  std::vector<uint32_t> crossed = crossings();
  std::vector<uint32_t> waiting(count, 0);
  const std::vector<std::vector<uint32_t>> all = edges_with_groups();
  for (const auto& list : all)
    for (const uint32_t to : list) ++waiting[to];
  for (const std::vector<uint32_t>& members : groups_)
    for (const uint32_t member : members) crossed[members.back()] = std::max(crossed[members.back()], crossed[member]);
  // tail, crossings, neither update nor collective of the host, position of the last of its group, position
  using Key = std::tuple<char, uint32_t, bool, uint32_t, uint32_t>;
  const auto comes_first = [&](size_t at) {
    const NodeId id = draft_.order[at];
    return updates_variable(net_, net_[id]) || (draft_.nodes[id.index].device == 0 && is_collective(net_[id]));
  };
  const auto key = [&](size_t at) {
    const uint32_t last = group_of_[at] < 0 ? static_cast<uint32_t>(at) : groups_[static_cast<size_t>(group_of_[at])].back();
    return Key(tail_[at], crossed[last], !comes_first(at), last, static_cast<uint32_t>(at));
  };
  std::priority_queue<Key, std::vector<Key>, std::greater<>> ready;
  for (size_t i = 0; i < count; ++i)
    if (waiting[i] == 0) ready.push(key(i));
  std::vector<NodeId> order;
  std::vector<uint32_t> place(count, UINT32_MAX);
  draft_.tail_begin = UINT32_MAX;
  while (!ready.empty()) {
    const auto [tail, crossing, is_other, last, at] = ready.top();
    ready.pop();
    if (tail && draft_.tail_begin == UINT32_MAX) draft_.tail_begin = static_cast<uint32_t>(order.size());
    place[at] = static_cast<uint32_t>(order.size());
    order.push_back(draft_.order[at]);
    for (const uint32_t next : all[at])
      if (--waiting[next] == 0) ready.push(key(next));
  }
  if (order.size() != count) return what_is_circular(place);
  if (draft_.tail_begin == UINT32_MAX) draft_.tail_begin = static_cast<uint32_t>(count);
  draft_.edges.assign(count, {});
  for (size_t i = 0; i < count; ++i) {
    std::sort(edges_[i].begin(), edges_[i].end());
    edges_[i].erase(std::unique(edges_[i].begin(), edges_[i].end()), edges_[i].end());
    for (const uint32_t to : edges_[i]) draft_.edges[place[i]].push_back(place[to]);
  }
  for (size_t i = 0; i < count; ++i) draft_.nodes[order[i].index].tail = i >= draft_.tail_begin;
  draft_.order = std::move(order);
  return {};
}

Status Orderer::run() {
  for (size_t i = 0; i < draft_.order.size(); ++i) position_[draft_.order[i].index] = static_cast<uint32_t>(i);
  edges_.resize(draft_.order.size());
  data_edges();
  HEDDLE_CHECK(hazard_edges());
  collective_edges();
  find_groups();
  mark_tail();
  return sort();
}

}  // namespace

Status order_steps(Draft& draft) {
  return Orderer(draft).run();
}

}  // namespace heddle::compiling
