#include "memory/offsets/offsets_items.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"

namespace heddle::offsets {

Items Parts::part(size_t p) const {
  const size_t from = begin[p];
  const size_t count = begin[p + 1] - from;
  return {std::span(buffers).subspan(from, count), std::span(ids).subspan(from, count), std::span(settled).subspan(from, count),
          interference};
}

Parts split_into_parts(const Problem& problem) {
  Parts parts;
  parts.interference = problem.interference.get();
  for (uint32_t i = 0; i < problem.buffers.size(); ++i)
    if (problem.buffers[i].bytes > 0) parts.ids.push_back(i);
  const auto earlier = [&](uint32_t a, uint32_t b) {
    const int64_t x = problem.buffers[a].first;
    const int64_t y = problem.buffers[b].first;
    return x != y ? x < y : a < b;
  };
  if (!std::is_sorted(parts.ids.begin(), parts.ids.end(), earlier)) std::sort(parts.ids.begin(), parts.ids.end(), earlier);
  parts.buffers.reserve(parts.ids.size());
  parts.settled.reserve(parts.ids.size());
  int64_t horizon = INT64_MIN;
  for (size_t i = 0; i < parts.ids.size(); ++i) {
    const Buffer& buffer = problem.buffers[parts.ids[i]];
    const int64_t settled = parts.interference == nullptr ? buffer.last : std::max(buffer.last, parts.interference->settled(parts.ids[i]));
    if (i == 0 || buffer.first >= horizon) parts.begin.push_back(i);
    horizon = std::max(horizon, settled);
    parts.buffers.push_back(buffer);
    parts.settled.push_back(settled);
  }
  parts.begin.push_back(parts.ids.size());
  return parts;
}

int64_t max_live_bytes(const Items& items) {
  int64_t alignment = INT64_MAX;
  for (const Buffer& buffer : items.buffers) alignment = std::min(alignment, buffer.alignment);
  // Ends in ascending order; starts are sorted already.
  std::vector<uint32_t> by_end(items.size());
  std::iota(by_end.begin(), by_end.end(), 0);
  std::sort(by_end.begin(), by_end.end(), [&](uint32_t a, uint32_t b) { return items.buffers[a].last < items.buffers[b].last; });
  int64_t live = 0, live_rounded = 0, most = 0, max_rounded = 0, padding = 0;
  size_t ended = 0;
  for (const Buffer& buffer : items.buffers) {
    for (; items.buffers[by_end[ended]].last <= buffer.first; ++ended) {
      const int64_t bytes = items.buffers[by_end[ended]].bytes;
      live -= bytes;
      live_rounded -= align_up(bytes, alignment);
    }
    const int64_t rounded = align_up(buffer.bytes, alignment);
    padding = std::max(padding, rounded - buffer.bytes);
    most = std::max(most, live += buffer.bytes);
    max_rounded = std::max(max_rounded, live_rounded += rounded);
  }
  return std::max(most, max_rounded - padding);
}

bool find_conflicts(const Items& items, int64_t limit, Effort* effort, Conflicts* conflicts) {
  conflicts->begin.clear();
  conflicts->list.clear();
  std::vector<std::pair<uint32_t, uint32_t>> pairs;  // (later, earlier), ascending by later
  std::vector<uint32_t> active;
  std::vector<uint32_t> degree(items.size() + 1, 0);
  int64_t looked = 0;
  for (uint32_t i = 0; i < items.size(); ++i) {
    size_t kept = 0;
    const auto looks = static_cast<int64_t>(active.size());
    if ((looked += looks) > limit || !effort->poll(looks)) return false;
    for (const uint32_t other : active) {
      if (items.settled[other] <= items.buffers[i].first) continue;
      active[kept++] = other;
      if (!items.interferes(i, other)) continue;
      pairs.emplace_back(i, other);
      ++degree[i];
      ++degree[other];
    }
    active.resize(kept);
    active.push_back(i);
  }
  conflicts->begin.assign(items.size() + 1, 0);
  for (size_t i = 0; i < items.size(); ++i) conflicts->begin[i + 1] = conflicts->begin[i] + degree[i];
  conflicts->list.resize(2 * pairs.size());
  std::vector<uint32_t> fill(conflicts->begin.begin(), conflicts->begin.end() - 1);
  // `active` keeps ascending order, so that earlier neighbours come ascending, then later ones ascending.
  for (const auto& [later, earlier] : pairs) {
    conflicts->list[fill[later]++] = earlier;
  }
  for (const auto& [later, earlier] : pairs) conflicts->list[fill[earlier]++] = later;
  return true;
}

}  // namespace heddle::offsets
