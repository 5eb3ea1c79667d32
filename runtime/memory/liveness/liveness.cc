#include "memory/liveness/liveness.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "memory/liveness/liveness_bound.h"
#include "memory/liveness/liveness_chains.h"
#include "memory/liveness/liveness_order.h"

namespace heddle {
namespace {

Status bad(std::string what) {
  return {Code::invalid_argument, std::move(what)};
}

// Checks that `begin` cuts `list` into `rows` rows.
Status check_rows(const std::vector<uint32_t>& begin, const std::vector<uint32_t>& list, size_t rows, const char* what) {
  if (begin.size() != rows + 1 || begin.front() != 0 || begin.back() != list.size() || !std::is_sorted(begin.begin(), begin.end()))
    return bad(fmt::format("the lists of {} do not fit together", what));
  return {};
}

Status validate(const LivenessProblem& problem) {
  if (problem.steps >= 1u << 31 || problem.values.size() >= size_t{1} << 31)
    return {Code::limit_exceeded, "more than 2^31 steps or values to plan"};
  if (problem.width == 0) return bad("a cover of no chains");
  if (!problem.cost.empty() && problem.cost.size() != problem.steps)
    return bad(fmt::format("{} costs for {} steps", problem.cost.size(), problem.steps));
  HEDDLE_CHECK(check_rows(problem.successor_begin, problem.successors, problem.steps, "successors"));
  HEDDLE_CHECK(check_rows(problem.use_begin, problem.uses, problem.values.size(), "uses"));
  for (uint32_t s = 0; s < problem.steps; ++s)
    for (uint32_t i = problem.successor_begin[s]; i < problem.successor_begin[s + 1]; ++i)
      if (problem.successors[i] <= s || problem.successors[i] >= problem.steps)
        return bad(fmt::format("the edge from step {} to {} does not go forward among {} steps", s, problem.successors[i], problem.steps));
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const LiveValue& value = problem.values[v];
    if (!value.from_start && value.definition >= problem.steps)
      return bad(fmt::format("value {} is defined by step {} of {}", v, value.definition, problem.steps));
    for (uint32_t i = problem.use_begin[v]; i < problem.use_begin[v + 1]; ++i)
      if (problem.uses[i] >= problem.steps || (!value.from_start && problem.uses[i] < value.definition))
        return bad(fmt::format("value {} of step {} is used by step {} of {}", v, value.definition, problem.uses[i], problem.steps));
  }
  for (const auto& [a, b] : problem.aliases)
    if (a >= problem.values.size() || b >= problem.values.size())
      return bad(fmt::format("an alias of values {} and {}, of {}", a, b, problem.values.size()));
  return {};
}

// Numbers the sets of aliases, in the order of their first values.
uint32_t number_buffers(const LivenessProblem& problem, std::vector<uint32_t>* buffer_of) {
  std::vector<uint32_t> root(problem.values.size());
  std::iota(root.begin(), root.end(), 0);
  const auto find = [&](uint32_t v) {
    while (root[v] != v) v = root[v] = root[root[v]];
    return v;
  };
  for (const auto& [a, b] : problem.aliases) {
    const uint32_t x = find(a);
    const uint32_t y = find(b);
    root[std::max(x, y)] = std::min(x, y);  // the root is the set's first value
  }
  uint32_t count = 0;
  buffer_of->resize(problem.values.size());
  for (uint32_t v = 0; v < problem.values.size(); ++v) (*buffer_of)[v] = find(v) == v ? count++ : (*buffer_of)[root[v]];
  return count;
}

// Makes one buffer for each set of aliases, with its life in plan order.
std::vector<offsets::Buffer> serial_lives(const LivenessProblem& problem, const std::vector<uint32_t>& buffer_of, uint32_t count) {
  std::vector<offsets::Buffer> buffers(count, {INT64_MAX, 0, 0, 1});
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const LiveValue& value = problem.values[v];
    offsets::Buffer& buffer = buffers[buffer_of[v]];
    const int64_t first = value.from_start ? 0 : value.definition;
    buffer.first = std::min(buffer.first, first);
    buffer.last = std::max(buffer.last, value.to_end ? int64_t{problem.steps} + 1 : first + 1);
    buffer.bytes = std::max(buffer.bytes, value.bytes);
    buffer.alignment = std::max(buffer.alignment, value.alignment);
    for (uint32_t i = problem.use_begin[v]; i < problem.use_begin[v + 1]; ++i)
      buffer.last = std::max(buffer.last, int64_t{problem.uses[i]} + 1);
  }
  return buffers;
}

// Keeps one step of each chain: the first, or the last.
void keep_outermost(std::vector<uint32_t>* steps, const ChainCover& cover, bool last) {
  if (steps->size() < 2) return;
  const auto key = [&](uint32_t s) { return std::pair(cover.chain[s], last ? ~cover.position[s] : cover.position[s]); };
  std::sort(steps->begin(), steps->end(), [&](uint32_t a, uint32_t b) { return key(a) < key(b); });
  steps->erase(std::unique(steps->begin(), steps->end(), [&](uint32_t a, uint32_t b) { return cover.chain[a] == cover.chain[b]; }),
               steps->end());
}

std::vector<BufferLife> partial_lives(const LivenessProblem& problem, const std::vector<uint32_t>& buffer_of, uint32_t count,
                                      const ChainCover& cover) {
  std::vector<BufferLife> lives(count);
  for (size_t v = 0; v < problem.values.size(); ++v) {
    const LiveValue& value = problem.values[v];
    BufferLife& life = lives[buffer_of[v]];
    life.from_start |= value.from_start;
    life.to_end |= value.to_end;
    if (!value.from_start) {
      life.definitions.push_back(value.definition);
      life.uses.push_back(value.definition);
    }
    life.uses.insert(life.uses.end(), problem.uses.begin() + problem.use_begin[v], problem.uses.begin() + problem.use_begin[v + 1]);
  }
  for (BufferLife& life : lives) {
    keep_outermost(&life.definitions, cover, false);
    keep_outermost(&life.uses, cover, true);
  }
  return lives;
}

}  // namespace

Result<LivenessResult> plan_lifetimes(const LivenessProblem& problem) {
  HEDDLE_CHECK(validate(problem), "while planning lifetimes");
  LivenessResult result;
  const uint32_t count = number_buffers(problem, &result.buffer_of);
  result.problem.buffers = serial_lives(problem, result.buffer_of, count);
  if ((problem.width == 1 && problem.lag == 0) || problem.steps == 0) return result;

  ChainCover cover = cover_with_chains(problem);
  result.added_edges = cover.added_edges;
  result.chain_of_step = cover.chain;
  result.chains = cover.chains();
  if (cover.chains() == 1) return result;  // the net is a chain: plan order is the only order anyway
  const std::vector<BufferLife> lives = partial_lives(problem, result.buffer_of, count, cover);
  const auto order = std::make_shared<PartialOrder>(cover, ForwardClocks(problem, cover), lives, result.problem.buffers, problem.steps);
  result.problem.known_lower_bound = antichain_bytes(problem, cover, *order, lives, result.problem.buffers, problem.bound_effort);
  result.problem.interference = order;
  return result;
}

}  // namespace heddle
