// Fences and events make an edge of the graph mean "is complete before" when a step only enqueues work.
//
//   same stream                  nothing: a stream works in order
//   another stream               of the same device, or of one whose streams may wait for it: an event, recorded after the one and
//                                waited for by the other
//   anything else                a fence, a step that is done when all that its stream was given before is done; the step before it
//                                requests the completion callback directly after its own work: one thread, and before the stream is
//                                given anything else. Also for host data that a step reads when it is enqueued, wherever that was
//                                written; extents on a device that a late step is prepared for are copied to the host before the fence;
//                                and for a late step after a collective: it may allocate, for which a device may wait for all its work
//
// The steps of a group are launched by the last of them. What follows another one is enqueued after that launch: by edges of order alone,
// for which no device waits; and so are their fences.
//
// Only the last of several edges from one stream matters: its predecessors are complete by then. Each stream ends in a fence, and has one
// before the update phase: a run is over, or its updates begin, when nothing is in flight and nothing has failed. Where the update phase
// joins on devices (compile/fault_steps.cc) its commit steps take the place of the fences before it.
#include <fmt/format.h>

#include <algorithm>

#include "compile/draft.h"

namespace heddle::compiling {
namespace {

class Fencer {
 public:
  explicit Fencer(Plan& plan) : plan_(plan), graph_(plan.graph), count_(plan.graph.count) {}

  void run() {
    find_predecessors();
    fenced_.assign(count_, 0);
    kept_.resize(count_);
    behind_fence_.resize(count_);
    for (const PlanDevice& d : plan_.devices) {
      first_stream_.push_back(streams_);
      streams_ += d.stream_classes.size();
    }
    seen_.assign(streams_ * streams_, none);
    for (uint32_t v = 0; v < count_; ++v) connect(v);
    find_launches();
    if (!plan_.joins_tail) fence_ends(0, graph_.tail_begin);
    fence_ends(graph_.tail_begin, count_);
    rebuild();
  }

 private:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr float fence_cost_ns = 500;  // from the device's callback to the steps after it; 0 would be "unknown"
  const DeviceWork* work(uint32_t step) const { return plan_.steps[step].on_device.get(); }
  // Returns the stream's index among those of all devices.
  size_t stream(const DeviceWork& work) const { return first_stream_[work.device - 1u] + work.stream; }
  bool waits_for(const DeviceWork& later, const DeviceWork& earlier) const {
    return later.device == earlier.device || plan_.devices[later.device - 1u].device->waits_for(*plan_.devices[earlier.device - 1u].device);
  }

  void find_predecessors() {
    predecessors_.resize(count_);
    for (uint32_t u = 0; u < count_; ++u)
      for (uint32_t e = graph_.successor_begin[u]; e < graph_.successor_begin[u + 1]; ++e) predecessors_[graph_.successors[e]].push_back(u);
  }

  // True if `v`, when it is enqueued, immediately reads on the host what `u` writes.
  bool reads_now(uint32_t v, uint32_t u) const {
    const PlanStep& reader = plan_.steps[v];
    const auto writes = [&](const MemoryPlace& place) {
      return std::any_of(plan_.steps[u].outputs.begin(), plan_.steps[u].outputs.end(), [&](const Operand& out) {
        if (!out.value.valid()) return false;
        const MemoryPlace& written = plan_.values[out.value.index].place;
        return written.kind == place.kind && written.device == place.device && written.index == place.index;
      });
    };
    for (size_t i = 0; work(v) && i < reader.inputs.size(); ++i)
      if (reader.inputs[i].value.valid() && work(v)->reads_on_host(i) && writes(plan_.values[reader.inputs[i].value.index].place))
        return true;
    return false;
  }

  // True if `v` is prepared for an extent that `u` finds on its device; the extent is then copied to the host.
  bool fetches_extents(uint32_t v, uint32_t u) {
    if (!plan_.steps[v].late) return false;
    std::vector<uint32_t>& fetched = plan_.steps[u].on_device->extents;
    bool any = false;
    for (const Operand& out : plan_.steps[u].outputs) {
      if (!out.value.valid()) continue;
      const PlanValue& value = plan_.values[out.value.index];
      const auto reads = [&](const Operand& in) { return in.value == out.value; };
      const std::vector<Operand>& inputs = plan_.steps[v].inputs;
      if (value.extent_slot < 0 || value.place.device == 0 || std::none_of(inputs.begin(), inputs.end(), reads)) continue;
      any = true;
      const auto slot = static_cast<uint32_t>(value.extent_slot);
      if (std::find(fetched.begin(), fetched.end(), slot) == fetched.end()) fetched.push_back(slot);
    }
    return any;
  }

  // Visits the latest predecessor first, so that the first one of a stream is the one that matters.
  void connect(uint32_t v) {
    const DeviceWork* here = work(v);
    std::vector<size_t> met;  // streams whose latest predecessor has been handled
    for (const uint32_t u : predecessors_[v])
      if (work(u) && (fetches_extents(v, u) || reads_now(v, u) || (work(v) && plan_.steps[v].late && plan_.steps[u].collective))) {
        fenced_[u] = 1;
        behind_fence_[u].push_back(v);
      }
    for (auto it = predecessors_[v].rbegin(); it != predecessors_[v].rend(); ++it) {
      const uint32_t u = *it;
      const DeviceWork* there = work(u);
      if (!there || (here && stream(*here) == stream(*there))) {
        kept_[u].push_back(v);
        continue;
      }
      if (std::find(met.begin(), met.end(), stream(*there)) != met.end()) continue;
      met.push_back(stream(*there));
      if (here && waits_for(*here, *there)) {
        kept_[u].push_back(v);
        wait(v, u);
      } else {
        fenced_[u] = 1;
        behind_fence_[u].push_back(v);
      }
    }
  }

  // Makes the stream of `v` wait for `u`, unless it has waited for something later already.
  void wait(uint32_t v, uint32_t u) {
    DeviceWork &later = *plan_.steps[v].on_device, &earlier = *plan_.steps[u].on_device;
    uint32_t& seen = seen_[stream(later) * streams_ + stream(earlier)];
    if (seen != none && seen >= u) return;
    seen = u;
    if (earlier.records < 0) {
      earlier.records = static_cast<int32_t>(plan_.events.size());
      plan_.events.push_back({earlier.device, plan_.devices[earlier.device - 1u].events++});
    }
    later.waits.push_back(static_cast<uint32_t>(earlier.records));
  }

  // The step that launches `u`, where that is another one.
  bool launched_later(uint32_t u) const { return work(u) && work(u)->launched_by >= 0; }

  // Adds the edges of order that groups need.
  void find_launches() {
    after_launch_.resize(count_);
    groups_.resize(count_);
    for (uint32_t u = 0; u < count_; ++u) {
      if (work(u)) groups_[u] = work(u)->group;
      if (!launched_later(u)) continue;
      const auto launch = static_cast<uint32_t>(work(u)->launched_by);
      kept_[u].push_back(launch);
      after_launch_[launch].insert(after_launch_[launch].end(), kept_[u].begin(), kept_[u].end() - 1);
    }
    for (uint32_t u = 0; u < count_; ++u)
      for (const uint32_t v : after_launch_[u])
        if (std::find(kept_[u].begin(), kept_[u].end(), v) == kept_[u].end()) kept_[u].push_back(v);
  }

  void fence_ends(uint32_t begin, uint32_t end) {
    std::vector<std::vector<char>> done;
    for (const PlanDevice& d : plan_.devices) done.emplace_back(d.stream_classes.size(), 0);
    for (uint32_t u = end; u-- > begin;)
      if (const DeviceWork* w = work(u); w && !std::exchange(done[w->device - 1u][w->stream], 1)) fenced_[u] = 1;
  }

  static PlanStep fence_of(const PlanStep& step) {
    PlanStep fence;
    const bool extents = !step.on_device->extents.empty();
    fence.name = fmt::format("{} of {}", extents ? "extents" : "fence", step.name);
    fence.domain = "heddle";
    fence.type = extents ? "Extents" : "Fence";
    fence.placed = step.placed;
    fence.kernel = fence_kernel();
    fence.on_device = std::make_unique<DeviceWork>();
    fence.on_device->kind = DeviceWork::Kind::fence;
    fence.on_device->device = step.on_device->device;
    fence.on_device->stream = step.on_device->stream;
    return fence;
  }

  // Returns the steps with their fences, each fence (of step u) as count_ + u: after its step, or after the step that launches that.
  std::vector<uint32_t> sequence() const {
    std::vector<uint32_t> all, waiting;
    for (uint32_t u = 0; u < count_; ++u) {
      all.push_back(u);
      if (fenced_[u]) waiting.push_back(count_ + u);
      if (launched_later(u)) continue;
      all.insert(all.end(), waiting.begin(), waiting.end());
      waiting.clear();
    }
    return all;
  }

  void rebuild() {
    const std::vector<uint32_t> all = sequence();
    std::vector<uint32_t> place(2 * size_t{count_} + 1);
    for (uint32_t at = 0; at < all.size(); ++at) place[all[at]] = at;
    const auto place_or_end = [&](uint32_t u) { return u == count_ ? static_cast<uint32_t>(all.size()) : place[u]; };
    std::vector<PlanStep> steps;
    StepGraph graph;
    graph.count = static_cast<uint32_t>(all.size());
    graph.tail_begin = place_or_end(graph_.tail_begin);
    for (uint32_t u = 0; u < count_; ++u) {
      DeviceWork* const work = plan_.steps[u].on_device.get();
      if (!work) continue;
      if (work->checks_for >= 0) work->checks_for = static_cast<int32_t>(place[static_cast<uint32_t>(work->checks_for)]);
      for (uint32_t& member : work->group) member = place[member];
      if (fenced_[u]) work->fence = static_cast<int32_t>(place[count_ + u]);
    }
    steps.reserve(graph.count);
    graph.predecessor_count.assign(graph.count, 0);
    const auto add = [&](PlanStep step, std::vector<uint32_t> successors, float cost_ns, uint8_t flags, heddle_finish_function finish) {
      steps.push_back(std::move(step));
      std::sort(successors.begin(), successors.end());
      graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
      for (const uint32_t next : successors) ++graph.predecessor_count[next];
      graph.successors.insert(graph.successors.end(), successors.begin(), successors.end());
      graph.cost_ns.push_back(cost_ns);
      graph.flags.push_back(flags);
      if (!graph_.finish.empty()) graph.finish.push_back(finish);
    };
    std::vector<PlanStep> fences(count_);
    for (uint32_t u = 0; u < count_; ++u)
      if (fenced_[u]) fences[u] = fence_of(plan_.steps[u]);
    for (const uint32_t number : all) {
      const uint32_t u = number % count_;
      std::vector<uint32_t> successors;
      for (const uint32_t v : number < count_ ? kept_[u] : behind_fence_[u]) successors.push_back(place[v]);
      if (number >= count_) {
        add(std::move(fences[u]), std::move(successors), fence_cost_ns, step_awaited, nullptr);
        continue;
      }
      if (fenced_[u]) successors.push_back(place[count_ + u]);
      for (const uint32_t member : groups_[u])
        if (member != u && fenced_[member]) successors.push_back(place[count_ + member]);
      DeviceWork* const work = plan_.steps[u].on_device.get();
      if (launched_later(u)) work->launched_by = static_cast<int32_t>(place[static_cast<uint32_t>(work->launched_by)]);
      add(std::move(plan_.steps[u]), std::move(successors), graph_.cost_ns[u], graph_.flags[u],
          graph_.finish.empty() ? nullptr : graph_.finish[u]);
    }
    graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
    plan_.steps = std::move(steps);
    plan_.graph = std::move(graph);
  }

  Plan& plan_;
  const StepGraph& graph_;
  const uint32_t count_;
  std::vector<std::vector<uint32_t>> predecessors_, kept_, behind_fence_;
  std::vector<std::vector<uint32_t>> after_launch_;  // by step that launches a group: what follows the others, by order alone
  std::vector<std::vector<uint32_t>> groups_;        // by step that launches a group: its members
  std::vector<char> fenced_;
  std::vector<size_t> first_stream_;  // by device, among the streams of all devices
  size_t streams_ = 0;                // number of streams of all devices
  std::vector<uint32_t> seen_;        // by waiting stream and stream waited for: the last step it has waited for
};

}  // namespace

Status add_fences(Draft& draft) {
  if (draft.locations) Fencer(draft.plan).run();
  return {};
}

}  // namespace heddle::compiling
