#include "compile/plan_check/plan_check_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/text.h"

namespace heddle::compiling {

Status wrong_plan(const std::string& what) {
  return {Code::internal, fmt::format("the plan is wrong: {}", what), "this is a defect of Heddle: please report it with the net"};
}

std::string plan_step_name(const Plan& plan, uint32_t step) {
  return fmt::format("step {} ({})", quoted(plan.steps[step].name), step);
}

Status PlanOrder::check_arrays() const {
  const uint32_t count = graph_.count;
  if (plan_.steps.size() != count) return wrong_plan(fmt::format("the graph has {} steps, the plan {}", count, plan_.steps.size()));
  const auto fits = [&](size_t size) { return size == count; };
  if (graph_.successor_begin.size() != size_t{count} + 1 || graph_.successor_begin[0] != 0 ||
      !std::is_sorted(graph_.successor_begin.begin(), graph_.successor_begin.end()) ||
      graph_.successor_begin.back() != graph_.successors.size() || !fits(graph_.predecessor_count.size()) || !fits(graph_.cost_ns.size()) ||
      !fits(graph_.flags.size()) || !(graph_.finish.empty() || fits(graph_.finish.size())))
    return wrong_plan("the arrays of the graph do not fit together");
  std::vector<uint32_t> incoming(count, 0);
  for (uint32_t from = 0; from < count; ++from)
    for (uint32_t e = graph_.successor_begin[from]; e < graph_.successor_begin[from + 1]; ++e) {
      const uint32_t to = graph_.successors[e];
      if (to >= count) return wrong_plan(fmt::format("{} has a successor that is not there", plan_step_name(plan_, from)));
      if (to <= from)
        return wrong_plan(
            fmt::format("the edge from {} to {} goes against plan order", plan_step_name(plan_, from), plan_step_name(plan_, to)));
      ++incoming[to];
    }
  for (uint32_t s = 0; s < count; ++s)
    if (incoming[s] != graph_.predecessor_count[s])
      return wrong_plan(
          fmt::format("{} counts {} predecessors and has {}", plan_step_name(plan_, s), graph_.predecessor_count[s], incoming[s]));
  if (graph_.tail_begin > count) return wrong_plan("the update phase begins after the last step");
  return {};
}

void PlanOrder::find_reach() {
  words_ = (size_t{graph_.count} + 63) / 64;
  reach_.assign(words_ * graph_.count, 0);
  for (uint32_t from = graph_.count; from-- > 0;)
    for (uint32_t e = graph_.successor_begin[from]; e < graph_.successor_begin[from + 1]; ++e) {
      const uint32_t to = graph_.successors[e];
      reach_[from * words_ + to / 64] |= uint64_t{1} << (to % 64);
      for (size_t w = 0; w < words_; ++w) reach_[from * words_ + w] |= reach_[to * words_ + w];
    }
}

// Whether `to` only has to be enqueued after `from`: one of them launches the other's group, or `from` launches what comes before `to`.
bool PlanOrder::of_order_alone(uint32_t from, uint32_t to) const {
  const DeviceWork* const work = plan_.steps[from].on_device.get();
  if (work->launched_by == static_cast<int32_t>(to)) return true;
  return std::any_of(work->group.begin(), work->group.end(), [&](uint32_t member) { return member != from && precedes(member, to); });
}

bool PlanOrder::precedes(uint32_t from, uint32_t to) const {
  const auto begin = graph_.successors.begin() + graph_.successor_begin[from];
  return std::find(begin, graph_.successors.begin() + graph_.successor_begin[from + 1], to) !=
         graph_.successors.begin() + graph_.successor_begin[from + 1];
}

// The steps of a group are on devices of their own, next to each other, and what comes after one of them comes after the one that launches.
Status PlanOrder::check_groups() const {
  std::vector<char> launched(graph_.count, 0);
  for (uint32_t s = 0; s < graph_.count; ++s) {
    const DeviceWork* const work = plan_.steps[s].on_device.get();
    if (!work || work->group.empty()) continue;
    std::vector<char> devices(plan_.devices.size() + 1, 0);
    bool itself = false;
    for (const uint32_t member : work->group) {
      const DeviceWork* const there = member < graph_.count ? plan_.steps[member].on_device.get() : nullptr;
      if (!there || there->kind != work->kind || there->device > plan_.devices.size() || devices[there->device]++ || launched[member]++)
        return wrong_plan(fmt::format("{} launches a step that is not its to launch", plan_step_name(plan_, s)));
      if (member > s || s - member >= work->group.size())
        return wrong_plan(fmt::format("{} launches {}, and is not next to it", plan_step_name(plan_, s), plan_step_name(plan_, member)));
      itself = itself || member == s;
      if (member == s) continue;
      if (there->launched_by != static_cast<int32_t>(s) || !precedes(member, s))
        return wrong_plan(fmt::format("{} launches {}, which is not before it", plan_step_name(plan_, s), plan_step_name(plan_, member)));
      for (uint32_t e = graph_.successor_begin[member]; e < graph_.successor_begin[member + 1]; ++e)
        if (const uint32_t next = graph_.successors[e]; next != s && !reaches(s, next))
          return wrong_plan(fmt::format("{} comes after {}, and not after {}, which launches it", plan_step_name(plan_, next),
                                        plan_step_name(plan_, member), plan_step_name(plan_, s)));
    }
    if (!itself) return wrong_plan(fmt::format("{} launches a group that it is not of", plan_step_name(plan_, s)));
  }
  for (uint32_t s = 0; s < graph_.count; ++s)
    if (const DeviceWork* const work = plan_.steps[s].on_device.get(); work && work->launched_by >= 0 && !launched[s])
      return wrong_plan(fmt::format("no step launches {}", plan_step_name(plan_, s)));
  return {};
}

// A step that only enqueues is complete for steps of its own device, and of others whose streams may wait for it; for the rest only its
// fence is.
Status PlanOrder::check_enqueued() const {
  for (uint32_t s = 0; s < graph_.count; ++s) {
    const DeviceWork* work = plan_.steps[s].on_device.get();
    if (!work) continue;
    if (work->device == 0 || work->device > plan_.devices.size())
      return wrong_plan(fmt::format("{} is on a device that is not there", plan_step_name(plan_, s)));
    for (uint32_t e = graph_.successor_begin[s]; work->kind != DeviceWork::Kind::fence && e < graph_.successor_begin[s + 1]; ++e) {
      const DeviceWork* next = plan_.steps[graph_.successors[e]].on_device.get();
      const bool waits = next && (next->device == work->device ||
                                  (next->device <= plan_.devices.size() &&
                                   plan_.devices[next->device - 1u].device->waits_for(*plan_.devices[work->device - 1u].device)));
      if (!waits && !of_order_alone(s, graph_.successors[e]))
        return wrong_plan(
            fmt::format("{} relies on {}, which is only enqueued", plan_step_name(plan_, graph_.successors[e]), plan_step_name(plan_, s)));
    }
  }
  return {};
}

// A late step on a device derives its extents from those of its inputs, which are on the host by then.
Status PlanOrder::check_extents() const {
  for (uint32_t s = 0; s < graph_.count; ++s) {
    const PlanStep& late = plan_.steps[s];
    if (!late.late || !late.on_device) continue;
    for (const Operand& in : late.inputs) {
      const PlanValue* const value = in.value.index < plan_.values.size() ? &plan_.values[in.value.index] : nullptr;
      if (!in.value.valid() || !value || value->extent_slot < 0 || value->place.device == 0) continue;
      const auto is_there = [&](uint32_t writer) {
        const DeviceWork* work = plan_.steps[writer].on_device.get();
        const auto& outputs = plan_.steps[writer].outputs;
        return work && work->fence >= 0 && reaches(static_cast<uint32_t>(work->fence), s) &&
               std::count(work->extents.begin(), work->extents.end(), static_cast<uint32_t>(value->extent_slot)) > 0 &&
               std::any_of(outputs.begin(), outputs.end(), [&](const Operand& out) { return out.value == in.value; });
      };
      bool found = false;
      for (uint32_t writer = 0; writer < s && !found; ++writer) found = is_there(writer);
      if (!found)
        return wrong_plan(fmt::format("{} is prepared for the extent of {}, which nobody brings to the host", plan_step_name(plan_, s),
                                      quoted(value->name)));
      if (plan_.extent_staging < 0 ||
          plan_.extent_staging + int64_t{plan_.extent_slots} * static_cast<int64_t>(sizeof(int64_t)) > plan_.staging_bytes)
        return wrong_plan("extents that late steps read have no memory on the host");
    }
  }
  return {};
}

// Calls for a stream are made one after the other: each step of it is after the one before. A fence makes no call, and is completed by the
// callback that its one predecessor requested.
Status PlanOrder::check_streams() const {
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> last;        // by device and stream
  std::vector<uint32_t> completed_by(graph_.count, UINT32_MAX);  // fences: by which step
  for (uint32_t s = 0; s < graph_.count; ++s)
    if (const DeviceWork* const work = plan_.steps[s].on_device.get(); work && work->fence >= 0) {
      const auto fence = static_cast<uint32_t>(work->fence);
      const auto after = static_cast<uint32_t>(work->launched_by >= 0 ? work->launched_by : static_cast<int32_t>(s));
      // The fences of a group follow its launch; any other is next to its step.
      const size_t last = after + std::max<size_t>(plan_.steps[after].on_device->group.size(), 1);
      if (fence <= after || fence > last || fence >= graph_.count || completed_by[fence] != UINT32_MAX)
        return wrong_plan(fmt::format("{} completes a fence that is not there", plan_step_name(plan_, s)));
      completed_by[fence] = s;
    }
  for (uint32_t s = 0; s < graph_.count; ++s) {
    const DeviceWork* work = plan_.steps[s].on_device.get();
    const bool is_fence = work && work->kind == DeviceWork::Kind::fence;
    if (is_fence != ((graph_.flags[s] & step_awaited) != 0))
      return wrong_plan(is_fence ? fmt::format("{} is a fence that is run", plan_step_name(plan_, s))
                                 : fmt::format("{} is awaited, and no fence", plan_step_name(plan_, s)));
    if (!work) continue;
    if (is_fence) {
      const uint32_t before = completed_by[s];
      const int32_t launch = before == UINT32_MAX ? -1 : plan_.steps[before].on_device->launched_by;
      if (before == UINT32_MAX || !precedes(before, s) || (launch >= 0 && !precedes(static_cast<uint32_t>(launch), s)) ||
          graph_.predecessor_count[s] != (launch >= 0 ? 2u : 1u))
        return wrong_plan(fmt::format("{} is a fence that nobody completes", plan_step_name(plan_, s)));
      continue;
    }
    const auto [it, first] = last.try_emplace({work->device, work->stream}, s);
    if (!first && !reaches(it->second, s))
      return wrong_plan(
          fmt::format("{} and {} call for one stream in no order", plan_step_name(plan_, s), plan_step_name(plan_, it->second)));
    it->second = s;
  }
  return {};
}

Status PlanOrder::read() {
  HEDDLE_CHECK(check_arrays());
  find_reach();
  HEDDLE_CHECK(check_groups());
  HEDDLE_CHECK(check_enqueued());
  HEDDLE_CHECK(check_extents());
  return check_streams();
}

}  // namespace heddle::compiling
