// Memory: one arena for all planned values and step scratch, thread scratch beside it.
//
// Buffers are packed by their lives in plan order. Where two of them share bytes, an order edge makes every use of the first happen before
// the second is written, so the sharing holds in every execution the scheduler may choose, not just in plan order.
#include <algorithm>
#include <map>

#include "base/checked.h"
#include "base/text.h"
#include "compile/draft.h"
#include "compile/offsets.h"

namespace heddle::compiling {
namespace {

constexpr int64_t alignment = 64;

struct Use {
  uint32_t first = UINT32_MAX;  // position that writes it first
  uint32_t last = 0;
  std::vector<uint32_t> users;  // positions, ascending
};

class MemoryPlanner {
 public:
  explicit MemoryPlanner(Draft& draft) : draft_(draft) {}
  Status run();

 private:
  void collect_uses();
  void build_problem();
  void add_memory_edges(const offsets::Solution& solution);
  Status report(const offsets::Solution& solution);
  std::string holders() const;

  Draft& draft_;
  std::vector<Use> uses_;  // by storage
  offsets::Problem problem_;
  std::vector<uint32_t> storage_of_buffer_;  // UINT32_MAX: scratch
  std::vector<uint32_t> step_of_buffer_;
};

void MemoryPlanner::collect_uses() {
  const Net& net = draft_.typed.net;
  uses_.assign(draft_.storages.size(), {});
  const auto touch = [&](ValueId v, uint32_t position) {
    const uint32_t storage = v.valid() ? draft_.storage_of[v.index] : UINT32_MAX;
    if (storage == UINT32_MAX || !draft_.storages[storage].planned()) return;
    Use& use = uses_[storage];
    use.first = std::min(use.first, position);
    use.last = std::max(use.last, position);
    if (use.users.empty() || use.users.back() != position) use.users.push_back(position);
  };
  for (uint32_t i = 0; i < draft_.order.size(); ++i) {
    const Node& node = net[draft_.order[i]];
    for (const ValueId v : node.outputs) touch(v, i);
    for (const ValueId v : node.inputs) touch(v, i);
  }
  const auto end = static_cast<uint32_t>(draft_.order.size());
  for (const ValueId v : net.outputs) touch(v, end);
}

void MemoryPlanner::build_problem() {
  const auto add = [&](int64_t first, int64_t last, int64_t bytes, uint32_t storage, uint32_t step) {
    problem_.buffers.push_back({first, last, align_up(bytes, alignment), alignment});
    storage_of_buffer_.push_back(storage);
    step_of_buffer_.push_back(step);
  };
  const auto end = static_cast<int64_t>(draft_.order.size()) + 1;
  for (uint32_t s = 0; s < draft_.storages.size(); ++s) {
    const Use& use = uses_[s];
    if (!draft_.storages[s].planned() || use.first == UINT32_MAX) continue;
    if (draft_.options.share_memory)
      add(use.first, int64_t{use.last} + 1, draft_.storages[s].bytes, s, use.first);
    else
      add(0, end, draft_.storages[s].bytes, s, use.first);
  }
  for (uint32_t i = 0; i < draft_.order.size(); ++i) {
    const NodeDraft& d = draft_.nodes[draft_.order[i].index];
    auto bytes = static_cast<int64_t>(d.prepared.scratch_bytes);
    int64_t nested = 0;
    for (const NestedPlan& n : d.nested) nested = std::max(nested, n.plan->context_bytes());
    bytes = align_up(bytes, alignment) + nested;
    if (bytes > 0) add(draft_.options.share_memory ? i : 0, draft_.options.share_memory ? int64_t{i} + 1 : end, bytes, UINT32_MAX, i);
  }
}

void MemoryPlanner::add_memory_edges(const offsets::Solution& solution) {
  if (!draft_.options.share_memory || draft_.options.max_threads <= 1) return;
  std::vector<uint32_t> by_time(problem_.buffers.size());
  for (uint32_t i = 0; i < by_time.size(); ++i) by_time[i] = i;
  std::sort(by_time.begin(), by_time.end(),
            [&](uint32_t a, uint32_t b) { return std::pair(problem_.buffers[a].first, a) < std::pair(problem_.buffers[b].first, b); });
  // Address ranges and who held each last: begin -> (end, buffer).
  std::map<int64_t, std::pair<int64_t, uint32_t>> held;
  for (const uint32_t b : by_time) {
    const int64_t begin = solution.offsets[b], end = begin + problem_.buffers[b].bytes;
    if (begin == end) continue;
    auto it = held.upper_bound(begin);
    if (it != held.begin() && std::prev(it)->second.first > begin) --it;
    while (it != held.end() && it->first < end) {
      const auto [from, entry] = *it;
      const auto [to, before] = entry;
      it = held.erase(it);
      if (from < begin) held[from] = {begin, before};
      if (to > end) it = held.insert({end, {to, before}}).first;
      const uint32_t writer = step_of_buffer_[b];
      const uint32_t storage = storage_of_buffer_[before];
      const auto edge = [&](uint32_t user) {
        if (user != writer && user < draft_.order.size()) draft_.edges[user].push_back(writer);
      };
      if (storage == UINT32_MAX)
        edge(step_of_buffer_[before]);
      else
        for (const uint32_t user : uses_[storage].users) edge(user);
    }
    held[begin] = {end, b};
  }
}

std::string MemoryPlanner::holders() const {
  std::vector<std::pair<int64_t, std::string>> big;
  for (size_t v = 0; v < draft_.typed.net.values.size(); ++v) {
    const uint32_t s = draft_.storage_of[v];
    if (s != UINT32_MAX && draft_.storages[s].planned())
      big.emplace_back(draft_.typed.types[v].byte_size(), draft_.typed.net.values[v].name);
  }
  std::sort(big.rbegin(), big.rend());
  std::vector<std::string> parts;
  for (size_t i = 0; i < big.size() && i < 3; ++i) parts.push_back(quoted(big[i].second) + " " + human_bytes(big[i].first));
  return join(parts, ", ");
}

Status MemoryPlanner::report(const offsets::Solution& solution) {
  Plan& plan = draft_.plan;
  int64_t thread_scratch = 0, scratch = 0, sum = 0;
  for (const NodeId id : draft_.order) {
    thread_scratch = std::max(thread_scratch, static_cast<int64_t>(draft_.nodes[id.index].prepared.thread_scratch_bytes));
    scratch = std::max(scratch, static_cast<int64_t>(draft_.nodes[id.index].prepared.scratch_bytes));
  }
  for (const offsets::Buffer& b : problem_.buffers) sum += b.bytes;
  plan.arena_bytes = solution.height;
  plan.thread_scratch_bytes = align_up(thread_scratch, 4096);  // threads never share a page
  plan.max_threads = draft_.options.max_threads;
  MemoryReport& memory = plan.memory;
  const int64_t beside = plan.thread_scratch_bytes * plan.max_threads;
  memory.arena_bytes = plan.arena_bytes;
  memory.peak_bytes = plan.context_bytes();
  memory.lower_bound_bytes = solution.lower_bound + beside;
  memory.lower_bound_kind = solution.lower_bound_kind == offsets::LowerBoundKind::antichain ? "antichain" : "max-live";
  memory.sum_bytes = sum + beside;
  memory.scratch_bytes = scratch + beside;
  if (memory.peak_bytes > std::min(draft_.options.memory_limit, draft_.options.limits.plan_bytes))
    return {Code::limit_exceeded,
            "the plan needs " + human_bytes(memory.peak_bytes) + ", the limit is " +
                human_bytes(std::min(draft_.options.memory_limit, draft_.options.limits.plan_bytes)) + "; the largest values are " +
                holders(),
            "raise --memory-limit to " + std::to_string(memory.peak_bytes) + " bytes, or use smaller inputs"};
  return {};
}

Status MemoryPlanner::run() {
  collect_uses();
  build_problem();
  offsets::PackOptions options;
  HEDDLE_TRY(const offsets::Solution solution, offsets::pack(problem_, options), "while planning memory");
  add_memory_edges(solution);
  for (size_t b = 0; b < problem_.buffers.size(); ++b) {
    if (storage_of_buffer_[b] != UINT32_MAX)
      draft_.storages[storage_of_buffer_[b]].placement.offset = solution.offsets[b];
    else
      draft_.plan.steps[step_of_buffer_[b]].scratch_offset = solution.offsets[b];
  }
  return report(solution);
}

}  // namespace

Status plan_memory(Draft& draft) {
  draft.plan.steps.resize(draft.order.size());
  return MemoryPlanner(draft).run();
}

}  // namespace heddle::compiling
