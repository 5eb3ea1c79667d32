// Plans with one corruption: the possible corruptions of a plan, and their places.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "completion_order.h"
#include "session/session_impl.h"

namespace heddle::testing_devices {

enum class MutantKind : uint8_t {
  edge,         // a step no longer comes after another
  event,        // the event that streams wait for is not recorded after a step
  wait,         // a stream does not wait for an event
  copy,         // a copy copies nothing
  extent_sync,  // the true extent of a value is not copied to the host
  operands,     // two inputs of one step change places
  streams,      // a step is on another stream of its device, and waits for nothing more
  buffers,      // one operand of a step is another value of the same type
  life,         // a value takes the bytes of another one before the last step that uses that one is done
  completion,   // a fence is passed when the step before on its stream is done
};

struct KindOfMutant {
  MutantKind kind;
  const char* name;
};
inline constexpr std::array<KindOfMutant, 10> kinds_of_mutants = {{{MutantKind::edge, "edge dropped"},
                                                                   {MutantKind::event, "event dropped"},
                                                                   {MutantKind::wait, "wait dropped"},
                                                                   {MutantKind::copy, "copy dropped"},
                                                                   {MutantKind::extent_sync, "extent sync dropped"},
                                                                   {MutantKind::operands, "operands swapped"},
                                                                   {MutantKind::streams, "streams swapped"},
                                                                   {MutantKind::buffers, "buffers swapped"},
                                                                   {MutantKind::life, "life short"},
                                                                   {MutantKind::completion, "completion early"}}};

// The place of a corruption: the meaning of `a` and `b` depends on the kind.
struct MutantSite {
  MutantKind kind = MutantKind::edge;
  uint32_t step = 0, a = 0, b = 0;
};

// All sites of a plan as it was made. Mutants change only parts that runs check, and never make the host access memory of a device.
class MutantSites {
 public:
  explicit MutantSites(const Plan& plan) : plan_(plan), order_(plan) {
    for (uint32_t i = 0; i < plan.steps.size(); ++i) {
      add_edges(i);
      add_operands(i);
      add_buffers(i);
      if (is_work(i)) add_work(i);
      if (is_fence(i)) add_completion(i);
    }
    add_lives();
  }
  const std::vector<MutantSite>& of(MutantKind kind) const { return sites_[static_cast<size_t>(kind)]; }

 private:
  const DeviceWork* work(uint32_t step) const { return plan_.steps[step].on_device.get(); }
  bool is_fence(uint32_t step) const { return work(step) && work(step)->kind == DeviceWork::Kind::fence; }
  bool is_work(uint32_t step) const { return work(step) && !is_fence(step); }
  const PlanValue& value(const Operand& operand) const { return plan_.values[operand.value.index]; }
  void add(MutantKind kind, uint32_t step, uint32_t a, uint32_t b = 0) { sites_[static_cast<size_t>(kind)].push_back({kind, step, a, b}); }

  // The edge to a fence only tells the step which fence it has, and orders nothing: completion covers those.
  void add_edges(uint32_t step) {
    for (uint32_t e = plan_.graph.successor_begin[step]; e < plan_.graph.successor_begin[step + 1]; ++e)
      if (!is_fence(plan_.graph.successors[e])) add(MutantKind::edge, step, e);
  }

  void add_work(uint32_t step) {
    if (work(step)->records >= 0) add(MutantKind::event, step, 0);
    for (uint32_t k = 0; k < work(step)->waits.size(); ++k) add(MutantKind::wait, step, k);
    if (work(step)->kind == DeviceWork::Kind::copy) add(MutantKind::copy, step, 0);
    for (uint32_t k = 0; k < work(step)->extents.size(); ++k) add(MutantKind::extent_sync, step, k);
    for (uint32_t s = 0; s < plan_.devices[work(step)->device - 1u].stream_classes.size(); ++s)
      if (s != work(step)->stream) add(MutantKind::streams, step, s);
  }

  bool may_stand_for(const PlanStep& step, size_t input, const PlanValue& is, const PlanValue& other) const {
    const bool lies = other.place.kind != MemoryPlace::Kind::none && other.place.kind != MemoryPlace::Kind::unplanned;
    const bool shape = step.on_device && step.on_device->kind != DeviceWork::Kind::copy && step.on_device->reads_on_host(input);
    return lies && is.place.kind != MemoryPlace::Kind::none && !shape && is.type == other.type && is.place.device == other.place.device &&
           is.layout == other.layout;
  }

  void add_operands(uint32_t i) {
    const PlanStep& step = plan_.steps[i];
    for (uint32_t a = 0; a < step.inputs.size(); ++a)
      for (uint32_t b = a + 1; b < step.inputs.size(); ++b)
        if (step.inputs[a].value.valid() && step.inputs[b].value.valid() && step.inputs[a].value.index != step.inputs[b].value.index &&
            may_stand_for(step, a, value(step.inputs[a]), value(step.inputs[b])) &&
            may_stand_for(step, b, value(step.inputs[b]), value(step.inputs[a])))
          add(MutantKind::operands, i, a, b);
  }

  // `a`: the number of the operand, inputs first. A copy reads feeds in its own way.
  void add_buffers(uint32_t i) {
    const PlanStep& step = plan_.steps[i];
    const auto inputs = static_cast<uint32_t>(step.inputs.size());
    for (uint32_t a = 0; a < inputs + step.outputs.size(); ++a) {
      const Operand& operand = a < inputs ? step.inputs[a] : step.outputs[a - inputs];
      if (!operand.value.valid() || value(operand).place.kind == MemoryPlace::Kind::input) continue;
      for (uint32_t v = 0; v < plan_.values.size(); ++v) {
        const PlanValue& other = plan_.values[v];
        const bool writable = other.place.kind == MemoryPlace::Kind::arena && value(operand).place.kind == MemoryPlace::Kind::arena;
        if (v != operand.value.index && other.place.kind != MemoryPlace::Kind::input && is_used(v) && (a < inputs || writable) &&
            may_stand_for(step, std::min(a, inputs), value(operand), other))
          add(MutantKind::buffers, i, a, v);
      }
    }
  }
  bool is_used(uint32_t v) {
    if (used_.empty()) {
      used_.assign(plan_.values.size(), 0);
      for (const PlanStep& step : plan_.steps)
        for (const auto* operands : {&step.inputs, &step.outputs})
          for (const Operand& operand : *operands)
            if (operand.value.valid()) used_[operand.value.index] = 1;
    }
    return used_[v] != 0;
  }

  // `a`: the step that completes the fence, `b`: the one before it on the stream.
  void add_completion(uint32_t fence) {
    for (uint32_t u = fence; u-- > 0;) {
      if (!is_work(u) || work(u)->fence != static_cast<int32_t>(fence)) continue;
      for (uint32_t before = u; before-- > 0;)
        if (is_work(before) && work(before)->device == work(u)->device && work(before)->stream == work(u)->stream) {
          if (work(before)->fence < 0) add(MutantKind::completion, fence, u, before);
          return;
        }
      return;
    }
  }

  // Values of an arena that share their bytes intentionally.
  struct Storage {
    uint32_t value = 0;  // one of them
    int64_t begin = 0, end = 0;
    uint8_t device = 0;
    bool leaves = false;          // it is an output of the net
    std::vector<uint32_t> users;  // steps, in plan order
  };
  std::vector<Storage> storages() const {
    std::map<std::pair<uint8_t, uint32_t>, Storage> all;
    const auto of = [&](ValueId id) -> Storage* {
      if (!id.valid() || plan_.values[id.index].place.kind != MemoryPlace::Kind::arena) return nullptr;
      const MemoryPlace& at = plan_.values[id.index].place;
      const Storage fresh = {
          static_cast<uint32_t>(id.index), at.offset, at.offset + plan_.values[id.index].type.byte_size(), at.device, false, {}};
      return &all.try_emplace({at.device, at.index}, fresh).first->second;
    };
    for (uint32_t i = 0; i < plan_.steps.size(); ++i)
      for (const auto* operands : {&plan_.steps[i].inputs, &plan_.steps[i].outputs})
        for (const Operand& operand : *operands)
          if (Storage* storage = of(operand.value); storage && (storage->users.empty() || storage->users.back() != i))
            storage->users.push_back(i);
    for (const ValueId output : plan_.outputs)
      if (Storage* storage = of(output)) storage->leaves = true;
    std::vector<Storage> list;
    for (auto& [place, storage] : all) list.push_back(std::move(storage));
    return list;
  }
  bool all_before(const std::vector<uint32_t>& users, size_t count, uint32_t step) const {
    return std::all_of(users.begin(), users.begin() + static_cast<std::ptrdiff_t>(count),
                       [&](uint32_t user) { return order_.step_is_before(user, step); });
  }

  // `step`: one value of the storage that moves, `a`: one of the storage whose bytes it takes, all of whose users but the last are done by
  // then. Other storages there are done, or come later.
  void add_lives() {
    const std::vector<Storage> all = storages();
    for (const Storage& old : all)
      for (const Storage& moved : all) {
        if (&old == &moved || old.device != moved.device || old.end - old.begin != moved.end - moved.begin || old.begin == moved.begin ||
            old.leaves || old.users.empty() || moved.users.empty())
          continue;
        const uint32_t writer = moved.users.front();
        if (order_.step_is_before(old.users.back(), writer) || !all_before(old.users, old.users.size() - 1, writer)) continue;
        const bool free = std::all_of(all.begin(), all.end(), [&](const Storage& other) {
          if (&other == &old || &other == &moved || other.device != old.device || other.end <= old.begin || old.end <= other.begin)
            return true;
          if (!other.leaves && all_before(other.users, other.users.size(), writer)) return true;
          return !moved.leaves && all_before(moved.users, moved.users.size(), other.users.front());
        });
        if (free) add(MutantKind::life, moved.value, old.value);
      }
  }

  const Plan& plan_;
  const CompletionOrder order_;
  std::vector<char> used_;
  std::array<std::vector<MutantSite>, kinds_of_mutants.size()> sites_;
};

inline void drop_edge(StepGraph& graph, uint32_t from, uint32_t edge) {
  --graph.predecessor_count[graph.successors[edge]];
  graph.successors.erase(graph.successors.begin() + edge);
  for (uint32_t s = from + 1; s <= graph.count; ++s) --graph.successor_begin[s];
}

inline void add_edge(StepGraph& graph, uint32_t from, uint32_t to) {
  ++graph.predecessor_count[to];
  graph.successors.insert(graph.successors.begin() + graph.successor_begin[from + 1], to);
  for (uint32_t s = from + 1; s <= graph.count; ++s) ++graph.successor_begin[s];
}

inline void complete_early(Plan& plan, uint32_t fence, uint32_t step, uint32_t before) {
  plan.steps[step].on_device->fence = -1;
  plan.steps[before].on_device->fence = static_cast<int32_t>(fence);
  StepGraph& graph = plan.graph;
  for (uint32_t e = graph.successor_begin[step]; e < graph.successor_begin[step + 1]; ++e)
    if (graph.successors[e] == fence) {
      drop_edge(graph, step, e);
      break;
    }
  add_edge(graph, before, fence);
}

// REQUIRES: no context of the plan has been made yet.
inline void mutate(Plan& plan, const MutantSite& site) {
  switch (site.kind) {
    case MutantKind::edge:
      return drop_edge(plan.graph, site.step, site.a);
    case MutantKind::event:
      plan.steps[site.step].on_device->records = -1;
      return;
    case MutantKind::wait: {
      std::vector<uint32_t>& waits = plan.steps[site.step].on_device->waits;
      waits.erase(waits.begin() + site.a);
      return;
    }
    case MutantKind::copy: {
      PlanValue nothing;
      nothing.name = "nothing";
      nothing.type.dtype = DType::f32;
      nothing.type.shape = Shape{0};
      for (auto* operands : {&plan.steps[site.step].inputs, &plan.steps[site.step].outputs})
        operands->front() = {ValueId(plan.values.size()), {}};
      plan.values.push_back(std::move(nothing));
      return;
    }
    case MutantKind::extent_sync: {
      std::vector<uint32_t>& extents = plan.steps[site.step].on_device->extents;
      extents.erase(extents.begin() + site.a);
      return;
    }
    case MutantKind::operands:
      std::swap(plan.steps[site.step].inputs[site.a], plan.steps[site.step].inputs[site.b]);
      return;
    case MutantKind::streams: {
      DeviceWork& work = *plan.steps[site.step].on_device;
      work.stream = site.a;
      if (work.fence >= 0) plan.steps[static_cast<size_t>(work.fence)].on_device->stream = site.a;
      return;
    }
    case MutantKind::buffers: {
      PlanStep& step = plan.steps[site.step];
      Operand& operand = site.a < step.inputs.size() ? step.inputs[site.a] : step.outputs[site.a - step.inputs.size()];
      operand.value = ValueId(site.b);
      return;
    }
    case MutantKind::life: {
      const MemoryPlace moved = plan.values[site.step].place;
      const int64_t offset = plan.values[site.a].place.offset;
      for (PlanValue& value : plan.values)
        if (value.place.kind == moved.kind && value.place.device == moved.device && value.place.index == moved.index)
          value.place.offset = offset;
      return;
    }
    case MutantKind::completion:
      return complete_early(plan, site.step, site.a, site.b);
  }
}

// Waits until all work that the devices were given is done: what a mutant has left in flight must not outlive its memory.
inline void let_finish(const Plan& plan, const Workspace& workspace) {
  for (const PlanDevice& planned : plan.devices)
    for (size_t s = 0; s < planned.stream_classes.size(); ++s) {
      const auto begin = planned.stream_classes.begin(), end = begin + static_cast<std::ptrdiff_t>(s);
      HostCall call;
      planned.device->synchronize(workspace.stream(*planned.device, planned.stream_classes[s],
                                                   static_cast<size_t>(std::count(begin, end, planned.stream_classes[s]))),
                                  &call);
    }
}

// Describes a site of the plan as it was made.
inline std::string describe(const Plan& plan, const MutantSite& site) {
  const auto step = [&](uint32_t i) { return "\"" + plan.steps[i].name + "\" (" + plan.steps[i].type.text() + ", " + std::to_string(i) + ")"; };
  const auto value = [&](uint32_t v) { return "\"" + plan.values[v].name + "\""; };
  const std::string name = kinds_of_mutants[static_cast<size_t>(site.kind)].name;
  const std::string at = std::to_string(site.a);
  switch (site.kind) {
    case MutantKind::edge:
      return name + ": " + step(site.step) + " -> " + step(plan.graph.successors[site.a]);
    case MutantKind::operands:
      return name + ": " + at + " and " + std::to_string(site.b) + " of " + step(site.step);
    case MutantKind::streams:
      return name + ": " + step(site.step) + " on stream " + at;
    case MutantKind::buffers:
      return name + ": operand " + at + " of " + step(site.step) + " is " + value(site.b);
    case MutantKind::life:
      return name + ": " + value(site.step) + " lies in the place of " + value(site.a);
    case MutantKind::completion:
      return name + ": " + step(site.step) + " by " + step(site.b);
    default:
      return name + ": " + at + " of " + step(site.step);
  }
}

}  // namespace heddle::testing_devices
