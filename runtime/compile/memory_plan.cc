// Memory: one arena on each device for its planned values and step scratch; on the host, thread scratch in addition. Host memory that
// devices copy from and to is pinned, and planned like the arena of one more device.
//
// Lives come from the partial order of the steps (liveness.h), so values that share bytes may do so in every execution the scheduler may
// choose. Where a net is wider than its threads can use, order edges are added that the scheduler honours like any other. So are edges that
// bound how late a step may run (memory_order.h), where they save memory: a step that nothing waits for, as the gradient of a weight, would
// keep what it reads for ever. A plan for one thread runs in plan order, and its lives are intervals.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "compile/draft.h"
#include "compile/memory_order.h"
#include "memory/liveness/liveness.h"
#include "memory/offsets/offsets.h"

namespace heddle::compiling {
namespace {

constexpr uint32_t chains_per_thread = 4;
constexpr uint32_t max_chains_in_flight = 32;  // concurrent asynchronous steps that get chains of their own
// The cost of a step whose kernel declares none, as the scheduler has it.
constexpr double unknown_cost_ns = 10000;

constexpr uint32_t no_storage = UINT32_MAX;

class MemoryPlanner {
 public:
  // Plans one device; 0 is the host, whose pinned memory is planned after its arena.
  MemoryPlanner(Draft& draft, uint8_t device, bool pinned = false) : draft_(draft), device_(device), pinned_(pinned) {}
  Status run();

 private:
  // Adds a planned value of the liveness problem: a storage, or (no_storage) the scratch of the step that defines it.
  void add_value(uint32_t storage, uint32_t definition, int64_t bytes, bool to_end, const std::vector<uint32_t>& uses);
  void add_storages();
  void add_scratch();
  void add_order();
  void place(const LivenessResult& lives, const offsets::Solution& solution);
  // One way to order the steps, and the memory that they take then.
  struct Packed {
    LivenessResult lives;
    offsets::Solution solution;
  };
  Result<Packed> pack(uint32_t lag);
  Result<Packed> pack_with_lag(Packed free);
  bool may_lag() const;
  int64_t thread_scratch_bytes() const;
  int64_t beside() const;
  Status report(const offsets::Problem& packed, const offsets::Solution& solution);
  void report_pinned(const offsets::Problem& packed, const offsets::Solution& solution);
  Status within_limits(const MemoryReport& memory) const;
  bool lies_here(const Storage& storage) const { return storage.planned() && storage.place.device == device_ && storage.pinned == pinned_; }
  std::string holders() const;

  Draft& draft_;
  const uint8_t device_;
  const bool pinned_;
  LivenessProblem problem_;
  std::vector<uint32_t> storage_of_value_;
};

void MemoryPlanner::add_value(uint32_t storage, uint32_t definition, int64_t bytes, bool to_end, const std::vector<uint32_t>& uses) {
  const bool share = draft_.options.share_memory;
  problem_.values.push_back({definition, align_up(bytes, arena_alignment), arena_alignment, !share, to_end || !share});
  problem_.uses.insert(problem_.uses.end(), uses.begin(), uses.end());
  problem_.use_begin.push_back(static_cast<uint32_t>(problem_.uses.size()));
  storage_of_value_.push_back(storage);
}

// A storage is written first by one step, and every other step that touches it depends on that one.
void MemoryPlanner::add_storages() {
  const Net& net = draft_.typed.net;
  std::vector<std::vector<uint32_t>> steps(draft_.storages.size());  // steps that use it, in plan order
  std::vector<char> to_end(draft_.storages.size(), 0);
  const auto planned = [&](ValueId v) {
    const uint32_t storage = v.valid() ? draft_.storage_of[v.index] : no_storage;
    return storage != no_storage && lies_here(draft_.storages[storage]) ? storage : no_storage;
  };
  const auto touch = [&](ValueId v, uint32_t position) {
    const uint32_t storage = planned(v);
    if (storage != no_storage && (steps[storage].empty() || steps[storage].back() != position)) steps[storage].push_back(position);
  };
  for (uint32_t i = 0; i < draft_.order.size(); ++i) {
    const Node& node = net[draft_.order[i]];
    for (const ValueId v : node.outputs) touch(v, i);
    for (const ValueId v : node.inputs) touch(v, i);
  }
  for (const ValueId v : net.outputs)
    if (const uint32_t storage = planned(v); storage != no_storage) to_end[storage] = 1;
  const int64_t guard = device_ == 0 ? 0 : draft_.plan.devices[device_ - 1].guard_bytes();
  for (uint32_t s = 0; s < steps.size(); ++s) {
    const int64_t bytes = align_up(draft_.storages[s].bytes, arena_alignment);
    if (!steps[s].empty()) add_value(s, steps[s].front(), bytes == 0 ? 0 : bytes + guard, to_end[s] != 0, steps[s]);
  }
}

void MemoryPlanner::add_scratch() {
  for (uint32_t i = 0; i < draft_.order.size(); ++i) {
    const NodeDraft& d = draft_.nodes[draft_.order[i].index];
    int64_t on_host = 0, on_device = 0;  // of subnets
    bool pinned = false;
    for (const NestedPlan& n : d.nested) {
      on_host = std::max(on_host, n.plan->context_bytes());
      pinned = pinned || n.plan->pinned_part() > 0;
      if (!n.plan->devices.empty()) on_device = std::max(on_device, n.plan->devices[0].arena_bytes);
    }
    const bool from_host = d.device != 0 && (d.kernel->kernel->flags & HEDDLE_KERNEL_MOVES_ONLY) != 0;
    int64_t bytes = 0;
    if (device_ == (from_host ? 0 : d.device) && pinned == pinned_) bytes = align_up(d.made.scratch_bytes, arena_alignment) + on_host;
    if (from_host && device_ == d.device) bytes = align_up(d.made.data_scratch_bytes, arena_alignment) + on_device;
    if (bytes > 0) add_value(no_storage, i, bytes, false, {});
  }
}

void MemoryPlanner::add_order() {
  const CompileOptions& options = draft_.options;
  problem_.steps = static_cast<uint32_t>(draft_.order.size());
  // Work on streams, and asynchronous steps, continue while the host runs ahead: then plan order is not the only order, not even with one
  // thread.
  uint32_t streams = 0, asynchronous = 0;
  for (const PlanDevice& d : draft_.plan.devices) streams += static_cast<uint32_t>(d.stream_classes.size());
  for (const NodeId id : draft_.order)
    if ((draft_.nodes[id.index].kernel->kernel->flags & HEDDLE_KERNEL_ASYNC) || draft_.suspends(id)) ++asynchronous;
  const uint32_t beside = streams + std::min(asynchronous, max_chains_in_flight);
  const bool in_plan_order = !options.share_memory || (draft_.target.max_threads <= 1 && beside == 0);
  problem_.width = in_plan_order ? 1 : chains_per_thread * draft_.target.max_threads + beside;
  problem_.successor_begin.push_back(0);
  for (uint32_t i = 0; i < problem_.steps; ++i) {
    problem_.successors.insert(problem_.successors.end(), draft_.edges[i].begin(), draft_.edges[i].end());
    problem_.successor_begin.push_back(static_cast<uint32_t>(problem_.successors.size()));
    const double declared = draft_.nodes[draft_.order[i].index].made.cost_ns;
    problem_.cost.push_back(static_cast<float>(declared > 0 ? declared : unknown_cost_ns));
  }
}

void MemoryPlanner::place(const LivenessResult& lives, const offsets::Solution& solution) {
  for (const auto& [from, to] : lives.added_edges) draft_.edges[from].push_back(to);
  for (size_t v = 0; v < problem_.values.size(); ++v) {
    const int64_t offset = solution.offsets[lives.buffer_of[v]] + (pinned_ ? draft_.plan.pinned_offset() : 0);
    const uint32_t step = problem_.values[v].definition;
    const NodeDraft& d = draft_.nodes[draft_.order[step].index];
    const bool of_data = device_ != 0 && (d.kernel->kernel->flags & HEDDLE_KERNEL_MOVES_ONLY) != 0;
    if (storage_of_value_[v] == no_storage)
      (of_data ? draft_.plan.steps[step].data_scratch_offset : draft_.plan.steps[step].scratch_offset) = offset;
    else
      draft_.storages[storage_of_value_[v]].place.offset = offset;
  }
}

std::string MemoryPlanner::holders() const {
  std::vector<std::pair<int64_t, std::string>> big;
  for (size_t v = 0; v < draft_.typed.net.values.size(); ++v) {
    const uint32_t s = draft_.storage_of[v];
    if (s != UINT32_MAX && draft_.storages[s].planned() && draft_.storages[s].place.device == device_)
      big.emplace_back(draft_.typed.types[v].byte_size(), draft_.typed.net.values[v].name);
  }
  std::sort(big.rbegin(), big.rend());
  std::vector<std::string> parts;
  for (size_t i = 0; i < big.size() && i < 3; ++i) parts.push_back(fmt::format("{} {}", quoted(big[i].second), human_bytes(big[i].first)));
  return join(parts, ", ");
}

// Steps that run on a thread of the host, also ones that enqueue, have thread scratch there.
int64_t MemoryPlanner::thread_scratch_bytes() const {
  if (device_ != 0) return 0;
  int64_t bytes = 0;
  for (const NodeId id : draft_.order) bytes = std::max(bytes, draft_.nodes[id.index].made.thread_scratch_bytes);
  return align_up(bytes, 4096);  // threads never share a page
}

// Returns the bytes that a context has there beside the arena.
int64_t MemoryPlanner::beside() const {
  return thread_scratch_bytes() * draft_.target.max_threads + (device_ == 0 ? draft_.plan.staging_bytes : 0);
}

Result<MemoryPlanner::Packed> MemoryPlanner::pack(uint32_t lag) {
  problem_.lag = lag;
  Packed packed;
  HEDDLE_TRY(packed.lives, plan_lifetimes(problem_));
  HEDDLE_TRY(packed.solution, offsets::pack(packed.lives.problem), "while planning memory");
  return packed;
}

// Where all steps run on threads of the host.
bool MemoryPlanner::may_lag() const {
  const bool asynchronous = std::any_of(draft_.order.begin(), draft_.order.end(), [&](NodeId id) {
    return (draft_.nodes[id.index].kernel->kernel->flags & HEDDLE_KERNEL_ASYNC) != 0 || draft_.suspends(id);
  });
  return problem_.width > 1 && draft_.plan.devices.empty() && !asynchronous;
}

// Takes a bound on how far steps lag where that saves memory: the smallest that costs next to no time, or, to stay within the memory limit,
// a smaller one.
Result<MemoryPlanner::Packed> MemoryPlanner::pack_with_lag(Packed free) {
  const StepLengths lengths(draft_, problem_);
  MemoryOrder& order = draft_.plan.memory_order;
  order.arena_bytes = order.arena_bytes_without = free.solution.height;
  order.length_ns = order.length_without_ns = lengths.with(free.lives.added_edges);
  Packed best = std::move(free);
  uint32_t lag = lengths.lag_within(order.length_without_ns);
  const bool limited = lag == 0 && best.solution.height + beside() > draft_.target.memory_limit;
  for (lag = limited ? StepLengths::prime_up_to(lengths.max_lag()) : lag; lag > 0; lag = StepLengths::prime_up_to(lag / 2)) {
    HEDDLE_TRY(Packed bounded, pack(lag));
    if (bounded.solution.height < best.solution.height) {
      order.lag = lag;
      order.arena_bytes = bounded.solution.height;
      order.length_ns = lengths.with(bounded.lives.added_edges);
      best = std::move(bounded);
    }
    if (best.solution.height + beside() <= draft_.target.memory_limit) break;
  }
  order.edges = static_cast<uint32_t>(best.lives.added_edges.size());
  return best;
}

Status MemoryPlanner::report(const offsets::Problem& packed, const offsets::Solution& solution) {
  Plan& plan = draft_.plan;
  int64_t scratch = 0, sum = 0;
  for (const NodeId id : draft_.order) {
    if (draft_.nodes[id.index].device == device_) scratch = std::max(scratch, draft_.nodes[id.index].made.scratch_bytes);
  }
  for (const offsets::Buffer& b : packed.buffers) sum += b.bytes;
  const int64_t a_thread = thread_scratch_bytes();
  if (device_ == 0) {
    plan.arena_bytes = solution.height;
    plan.thread_scratch_bytes = a_thread;
    plan.max_threads = draft_.target.max_threads;
  } else {
    plan.devices[device_ - 1].arena_bytes = solution.height;
  }
  MemoryReport& memory = device_ == 0 ? plan.memory : plan.devices[device_ - 1].memory;
  memory.arena_bytes = solution.height;
  memory.peak_bytes = solution.height + beside();
  memory.lower_bound_bytes = solution.lower_bound + beside();
  memory.lower_bound_kind = solution.lower_bound_kind == offsets::LowerBoundKind::antichain ? "antichain" : "max-live";
  memory.sum_bytes = sum + beside();
  memory.scratch_bytes = scratch + a_thread * draft_.target.max_threads;
  return within_limits(memory);
}

// Adds pinned memory to the arena's figures.
void MemoryPlanner::report_pinned(const offsets::Problem& packed, const offsets::Solution& solution) {
  draft_.plan.pinned_bytes = solution.height;
  MemoryReport& memory = draft_.plan.memory;
  memory.peak_bytes += solution.height;
  memory.lower_bound_bytes += solution.lower_bound;
  for (const offsets::Buffer& b : packed.buffers) memory.sum_bytes += b.bytes;
}

Status MemoryPlanner::within_limits(const MemoryReport& memory) const {
  const Plan& plan = draft_.plan;
  const std::string what =
      device_ == 0 ? fmt::format("the plan needs {}", human_bytes(memory.peak_bytes))
                   : fmt::format("the plan needs {} on {}", human_bytes(memory.peak_bytes), plan.devices[device_ - 1].device->name());
  if (memory.peak_bytes > draft_.target.memory_limit)
    return {Code::limit_exceeded,
            fmt::format("{}, the limit is {}; the largest values are {}", what, human_bytes(draft_.target.memory_limit), holders()),
            hint_with("raise ", option_names::memory_limit, fmt::format(" to {} bytes, or use smaller inputs", memory.peak_bytes))};
  if (memory.peak_bytes > draft_.target.limits.plan_bytes)
    return over_limit(draft_.target.limits, &Limits::plan_bytes, fmt::format("{}, the largest values are {}", what, holders()));
  return {};
}

Status MemoryPlanner::run() {
  problem_.use_begin.push_back(0);
  add_storages();
  add_scratch();
  add_order();
  HEDDLE_TRY(Packed packed, pack(0));
  if (may_lag()) {
    HEDDLE_TRY(packed, pack_with_lag(std::move(packed)));
  }
  place(packed.lives, packed.solution);
  if (!pinned_) return report(packed.lives.problem, packed.solution);
  report_pinned(packed.lives.problem, packed.solution);
  return within_limits(draft_.plan.memory);
}

// Marks the storages that devices copy from and to, where one of them pins.
void find_pinned(Draft& draft) {
  for (const NodeId id : draft.order) {
    if (!draft.plan.pinned_by || draft.draft(id).device == 0 || !is_copy(draft.node(id))) continue;
    for (const ValueId value : {draft.node(id).inputs[0], draft.node(id).outputs[0]})
      if (Storage& storage = draft.storages[draft.storage_of[value.index]]; storage.planned() && storage.place.device == 0)
        storage.pinned = true;
  }
}

}  // namespace

Status plan_memory(Draft& draft) {
  draft.plan.steps.resize(draft.order.size());
  find_pinned(draft);
  // Each device honours the order edges that earlier ones have added.
  for (size_t device = 0; device <= draft.plan.devices.size(); ++device) {
    HEDDLE_CHECK(MemoryPlanner(draft, static_cast<uint8_t>(device)).run());
    if (device == 0 && draft.plan.pinned_by) HEDDLE_CHECK(MemoryPlanner(draft, 0, true).run());
  }
  return {};
}

}  // namespace heddle::compiling
