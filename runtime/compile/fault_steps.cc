// The steps that keep variables as they are when data are bad, in plans with steps on devices:
//
//   CheckIndices  before the update phase: the indices of an update that a device runs by a kernel of the host
//   Commit        begins the update phase where it joins on devices: the updates after it obey what it has copied
//   Faults        copies to the host what a device has to report, before the update phase that begins by a look of the host, and at the end
//
// The update phase joins on devices if all its steps run there, each of its devices can wait for all others and copy from them, and each
// update obeys its holds. Otherwise it begins when the host has seen that all work before it is done.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/device_name.h"
#include "compile/draft.h"
#include "compile/index_check.h"
#include "plugin/registry.h"
#include "resolve/collectives.h"
#include "resolve/updates.h"

namespace heddle::compiling {
namespace {

bool has_flag(const KernelEntry* kernel, uint32_t flag) {
  return kernel && (kernel->kernel->flags & flag) != 0;
}

// Whether a kernel on the node's device may report an index that is out of range. A late node makes plans of its subnets while it runs:
// their kernels may.
bool may_report(const Draft& draft, NodeId id) {
  const Node& node = draft.node(id);
  const NodeDraft& d = draft.nodes[id.index];
  if (d.device == 0 || draft.launched(id) || is_copy(node)) return false;
  if (has_flag(d.kernel, HEDDLE_KERNEL_MOVES_ONLY))
    return std::any_of(d.nested.begin(), d.nested.end(), [](const NestedPlan& n) { return n.plan->uses_faults; }) ||
           (d.late && node.has_subnet() && draft.typed.registry->has_kernels_with(device_kind(draft.device(id)), HEDDLE_KERNEL_USES_FAULT));
  if (!has_flag(d.kernel, HEDDLE_KERNEL_USES_FAULT)) return false;
  const auto indexes = [&](size_t i) {
    const heddle_port* const port = node.schema->input_port(i);
    return port && port->index_bound_port >= 0;
  };
  bool any = !updates_variable(draft.typed.net, node);
  for (size_t i = 0; i < node.inputs.size(); ++i) any = any || indexes(i);
  return any;
}

// Ranks agree to update their variables on the host, once their devices have done all that comes before.
bool has_ranks(const Draft& draft) {
  return draft.options.ranks_of && std::any_of(draft.order.begin(), draft.order.end(), [&](NodeId id) {
           return has_collectives(draft.node(id)) && draft.options.ranks_of(communicator_of(draft.node(id))) > 1;
         });
}

// Whether the update phase can begin on the devices.
bool may_join(Draft& draft) {
  const std::vector<PlanDevice>& devices = draft.plan.devices;
  if (draft.tail_begin == draft.order.size() || draft.target.own_ports || has_ranks(draft)) return false;
  for (size_t i = draft.tail_begin; i < draft.order.size(); ++i) {
    const NodeId id = draft.order[i];
    const NodeDraft& d = draft.draft(id);
    if (d.device == 0 || d.late || has_flag(d.kernel, HEDDLE_KERNEL_MOVES_ONLY)) return false;
    if (updates_variable(draft.typed.net, draft.node(id)) && !draft.launched(id) && !has_flag(d.kernel, HEDDLE_KERNEL_USES_FAULT))
      return false;
  }
  for (const PlanDevice& a : devices)
    for (const PlanDevice& b : devices)
      if (&a != &b && (!a.device->waits_for(*b.device) || !a.device->reaches(*b.device))) return false;
  return true;
}

// Adds steps to a plan that is laid out: some before the update phase, which may be part of it, and some at the end.
class Additions {
 public:
  explicit Additions(Plan& plan) : plan_(plan), graph_(plan.graph), tail_(plan.graph.tail_begin) {
    for (uint32_t s = 0; s < graph_.count; ++s) edges_.emplace_back(successors(s));
  }

  void run() {
    if (tail_ < graph_.count) add_before_tail();
    add_ends();
    if (!before_.empty() || !ends_.empty()) rebuild();
  }

 private:
  // A step to be added, and the steps that it follows.
  struct Added {
    PlanStep step;
    std::vector<uint32_t> after;
  };
  std::vector<uint32_t> successors(uint32_t s) const {
    return {graph_.successors.begin() + graph_.successor_begin[s], graph_.successors.begin() + graph_.successor_begin[s + 1]};
  }
  const DeviceWork* work(uint32_t step) const { return plan_.steps[step].on_device.get(); }
  // Added steps are numbered after those of the plan, first those before the tail.
  uint32_t number_before(size_t k) const { return graph_.count + static_cast<uint32_t>(k); }

  PlanStep auxiliary(DeviceWork::Kind kind, const char* type, const KernelEntry* kernel, uint32_t device, uint32_t stream) const {
    PlanStep step;
    step.name = fmt::format("{} of {}", kind == DeviceWork::Kind::commit ? "commit" : "faults", plan_.devices[device - 1].device->name());
    step.domain = "heddle";
    step.type = type;
    step.kernel = kernel;
    step.placed = static_cast<uint8_t>(device);
    step.on_device = std::make_unique<DeviceWork>();
    step.on_device->kind = kind;
    step.on_device->device = static_cast<uint8_t>(device);
    step.on_device->stream = stream;
    return step;
  }

  // Returns what a step added now must follow so that all steps of the plan before `end`, and all those added before the tail, are done:
  // the last of each stream. `device`: those of that device alone; 0: of all.
  std::vector<uint32_t> last_steps(uint32_t end, uint32_t device) const {
    std::map<std::pair<uint32_t, uint32_t>, uint32_t> last;
    for (uint32_t s = 0; s < end; ++s)
      if (work(s) && (device == 0 || work(s)->device == device)) last[{work(s)->device, work(s)->stream}] = s;
    std::vector<uint32_t> steps;
    for (const auto& [stream, step] : last) steps.push_back(step);
    for (size_t k = 0; k < before_.size(); ++k)
      if (device == 0 || before_[k].step.on_device->device == device) steps.push_back(number_before(k));
    return steps;
  }

  void add_checks();
  void add_before_tail();
  void add_commits();
  void add_ends();
  void rebuild();

  Plan& plan_;
  const StepGraph& graph_;
  const uint32_t tail_;
  std::vector<std::vector<uint32_t>> edges_;
  std::vector<Added> before_, ends_;
  size_t before_in_tail_ = 0;  // how many of before_, at its end, are part of the update phase
};

// A kernel written for the device reports indices by itself.
void Additions::add_checks() {
  for (const CheckedInput& checked : checked_inputs(plan_)) {
    const PlanStep& update = plan_.steps[checked.step];
    if (!update.on_device || update.on_device->kind != DeviceWork::Kind::launch) continue;
    const DeviceWork& there = *update.on_device;
    PlanStep check = auxiliary(DeviceWork::Kind::launch, "CheckIndices", index_check_kernel(), there.device, there.stream);
    check.name = fmt::format("indices of {}", update.name);
    check.state = KernelState(new int32_t(checked.indices.axis), DestroyState{index_check_kernel()});
    check.inputs = {update.inputs[checked.indices.input], update.inputs[checked.indices.of]};
    check.on_device->checks_for = static_cast<int32_t>(checked.step);
    std::vector<uint32_t> after = last_steps(tail_, there.device);
    before_.push_back({std::move(check), std::move(after)});
  }
}

// The first of the devices with updates decides; the others copy from it what it has found. Updates obey it: the host has not looked before
// them.
void Additions::add_commits() {
  std::map<uint32_t, uint32_t> devices;  // with the stream of the first update on each
  for (uint32_t i = tail_; i < graph_.count; ++i) {
    devices.try_emplace(work(i)->device, work(i)->stream);
    plan_.steps[i].on_device->held = plan_.steps[i].updates_variable;
  }
  for (const auto& [device, stream] : devices) {
    PlanStep commit = auxiliary(DeviceWork::Kind::commit, "Commit", commit_kernel(), device, stream);
    commit.on_device->copied_from = static_cast<uint8_t>(devices.begin()->first);
    std::vector<uint32_t> after = last_steps(tail_, 0);
    before_.push_back({std::move(commit), std::move(after)});
    ++before_in_tail_;
  }
}

void Additions::add_before_tail() {
  add_checks();
  if (plan_.joins_tail) {
    add_commits();
    return;
  }
  for (uint32_t d = 1; d <= plan_.devices.size(); ++d)
    if (plan_.devices[d - 1].may_report) {
      std::vector<uint32_t> after = last_steps(tail_, d);
      before_.push_back({auxiliary(DeviceWork::Kind::faults, "Faults", faults_kernel(), d, 0), std::move(after)});
    }
}

// Nothing is left to be said where the host has looked before the update phase and no step of that may report.
void Additions::add_ends() {
  for (uint32_t d = 1; d <= plan_.devices.size(); ++d) {
    bool any = plan_.devices[d - 1].may_report && (tail_ == graph_.count || plan_.joins_tail);
    for (uint32_t i = tail_; i < graph_.count; ++i) any = any || (work(i) && work(i)->may_report && work(i)->device == d);
    if (!any) continue;
    ends_.push_back({auxiliary(DeviceWork::Kind::faults, "Faults", faults_kernel(), d, 0), last_steps(graph_.count, d)});
  }
}

void Additions::rebuild() {
  const uint32_t added = static_cast<uint32_t>(before_.size()), all = graph_.count + added + static_cast<uint32_t>(ends_.size());
  const auto place = [&](uint32_t number) {
    if (number < tail_) return number;
    if (number < graph_.count) return number + added;
    return number - graph_.count < added ? tail_ + (number - graph_.count) : number;
  };
  std::vector<PlanStep> steps(all);
  std::vector<std::vector<uint32_t>> next(all);
  for (uint32_t s = 0; s < graph_.count; ++s) {
    steps[place(s)] = std::move(plan_.steps[s]);
    for (const uint32_t to : edges_[s]) next[place(s)].push_back(place(to));
  }
  for (std::vector<Added>* const list : {&before_, &ends_})
    for (size_t k = 0; k < list->size(); ++k) {
      const uint32_t at = place(number_before(list == &before_ ? k : before_.size() + k));
      for (const uint32_t from : (*list)[k].after) next[place(from)].push_back(at);
      if (DeviceWork& work = *(*list)[k].step.on_device; work.checks_for >= 0)
        work.checks_for = static_cast<int32_t>(place(static_cast<uint32_t>(work.checks_for)));
      steps[at] = std::move((*list)[k].step);
    }
  // Steps that were added before the update phase come before all of it on their device: commits decide for it, and a stream has an order.
  for (uint32_t a = tail_; a < tail_ + added; ++a)
    for (uint32_t i = tail_ + added; i < graph_.count + added; ++i)
      if (steps[i].on_device && steps[i].on_device->device == steps[a].on_device->device) next[a].push_back(i);
  StepGraph graph;
  graph.count = all;
  graph.tail_begin = tail_ == graph_.count ? all : tail_ + added - static_cast<uint32_t>(before_in_tail_);
  graph.predecessor_count.assign(all, 0);
  graph.cost_ns.assign(all, 0);
  graph.flags.assign(all, 0);
  if (!graph_.finish.empty()) graph.finish.assign(all, nullptr);
  for (uint32_t s = 0; s < graph_.count; ++s) {
    graph.cost_ns[place(s)] = graph_.cost_ns[s];
    graph.flags[place(s)] = graph_.flags[s];
    if (!graph_.finish.empty()) graph.finish[place(s)] = graph_.finish[s];
  }
  for (uint32_t s = 0; s < all; ++s) {
    std::sort(next[s].begin(), next[s].end());
    next[s].erase(std::unique(next[s].begin(), next[s].end()), next[s].end());
    graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
    for (const uint32_t to : next[s]) ++graph.predecessor_count[to];
    graph.successors.insert(graph.successors.end(), next[s].begin(), next[s].end());
  }
  graph.successor_begin.push_back(static_cast<uint32_t>(graph.successors.size()));
  plan_.commits = static_cast<uint32_t>(before_in_tail_);
  plan_.steps = std::move(steps);
  plan_.graph = std::move(graph);
}

}  // namespace

Status plan_faults(Draft& draft) {
  if (!draft.locations) return {};
  Plan& plan = draft.plan;
  for (const NodeId id : draft.order)
    if (may_report(draft, id)) plan.uses_faults = draft.draft(id).may_report = plan.devices[draft.draft(id).device - 1u].may_report = true;
  if (draft.target.own_ports) {  // a subnet reports where the operator around it does
    for (PlanDevice& device : plan.devices) device.may_report = false;
    return {};
  }
  plan.joins_tail = may_join(draft);
  for (PlanDevice& device : plan.devices) device.has_block = device.may_report;
  for (size_t i = draft.tail_begin; plan.joins_tail && i < draft.order.size(); ++i)
    plan.devices[draft.draft(draft.order[i]).device - 1u].has_block = true;
  return {};
}

Status add_fault_steps(Draft& draft) {
  if (draft.locations && !draft.target.own_ports) Additions(draft.plan).run();
  return {};
}

}  // namespace heddle::compiling
