#include "compile/memory_order.h"

#include <algorithm>

namespace heddle::compiling {
namespace {

// Places for each thread. The least of them costs inception_v3, whose branches have a few short steps each, no time on two threads.
constexpr uint32_t min_lag_per_thread = 3, max_lag_per_thread = 24;
constexpr uint64_t max_clock_entries = uint64_t{1} << 26;  // of the clocks that liveness keeps, a row of `lag` for each step

// A step that some threads work on.
struct Active {
  uint32_t step = 0;
  double left = 0;  // ns of one thread
  int64_t threads = 1;
};

// Gives each step a thread, and those that are left to steps with tiles for them; returns the time until the first step is done.
double share(std::vector<Active>& active, int64_t threads, const std::vector<int64_t>& tiles) {
  int64_t idle = threads - static_cast<int64_t>(active.size());
  double next = active.front().left;
  for (Active& a : active) {
    a.threads = 1 + std::clamp<int64_t>(tiles[a.step] - 1, 0, idle);
    idle -= a.threads - 1;
    next = std::min(next, a.left / static_cast<double>(a.threads));
  }
  return next;
}

}  // namespace

uint32_t StepLengths::prime_up_to(uint32_t n) {
  const auto is_prime = [](uint32_t p) {
    for (uint32_t d = 2; d * d <= p; ++d)
      if (p % d == 0) return false;
    return true;
  };
  while (n > 2 && !is_prime(n)) --n;
  return n;
}

StepLengths::StepLengths(const Draft& draft, const LivenessProblem& problem) : draft_(draft), problem_(problem), rank_(problem.steps) {
  for (const NodeId id : draft.order) tiles_.push_back(draft.nodes[id.index].made.tiles);
  for (uint32_t s = problem.steps; s-- > 0;) {
    for (uint32_t e = problem.successor_begin[s]; e < problem.successor_begin[s + 1]; ++e)
      rank_[s] = std::max(rank_[s], rank_[problem.successors[e]]);
    rank_[s] += problem.cost[s];
  }
}

uint32_t StepLengths::threads() const {
  return static_cast<uint32_t>(std::max(1, static_cast<int>(draft_.target.max_threads)));
}

double StepLengths::simulate(const std::vector<std::vector<uint32_t>>& added) const {
  std::vector<uint32_t> pending(problem_.steps, 0), ready;
  for (const uint32_t to : problem_.successors) ++pending[to];
  for (const auto& list : added)
    for (const uint32_t to : list) ++pending[to];
  const auto less_urgent = [&](uint32_t a, uint32_t b) { return std::pair(rank_[a], b) < std::pair(rank_[b], a); };
  const auto push = [&](uint32_t step) {
    ready.push_back(step);
    std::push_heap(ready.begin(), ready.end(), less_urgent);
  };
  for (uint32_t s = 0; s < problem_.steps; ++s)
    if (pending[s] == 0) push(s);
  const auto finish = [&](uint32_t step) {
    for (uint32_t e = problem_.successor_begin[step]; e < problem_.successor_begin[step + 1]; ++e)
      if (--pending[problem_.successors[e]] == 0) push(problem_.successors[e]);
    for (const uint32_t to : added[step])
      if (--pending[to] == 0) push(to);
  };
  std::vector<Active> active;
  double now = 0;
  while (!ready.empty() || !active.empty()) {
    for (; !ready.empty() && active.size() < threads(); ready.pop_back()) {
      std::pop_heap(ready.begin(), ready.end(), less_urgent);
      active.push_back({ready.back(), static_cast<double>(problem_.cost[ready.back()]), 1});
    }
    const double next = share(active, threads(), tiles_);
    now += next;
    std::vector<Active> still;
    for (Active& a : active) {
      a.left -= next * static_cast<double>(a.threads);
      if (a.left > 1e-3)
        still.push_back(a);
      else
        finish(a.step);
    }
    active = std::move(still);
  }
  return now;
}

double StepLengths::with(std::span<const std::pair<uint32_t, uint32_t>> edges) const {
  std::vector<std::vector<uint32_t>> added(problem_.steps);
  for (const auto& [from, to] : edges) added[from].push_back(to);
  return simulate(added);
}

uint32_t StepLengths::max_lag() const {
  uint32_t lag = max_lag_per_thread * threads();
  while (lag > 0 && uint64_t{lag} * problem_.steps > max_clock_entries) lag /= 2;
  return lag;
}

uint32_t StepLengths::lag_within(double length_ns) const {
  constexpr double longer = 1.01;
  for (uint32_t places = min_lag_per_thread * threads(); places <= max_lag() && places < problem_.steps; places *= 2) {
    const uint32_t lag = prime_up_to(places);
    std::vector<std::vector<uint32_t>> added(problem_.steps);
    for (uint32_t s = lag; s < problem_.steps; ++s) added[s - lag].push_back(s);
    if (simulate(added) <= longer * length_ns) return lag;
  }
  return 0;
}

}  // namespace heddle::compiling
