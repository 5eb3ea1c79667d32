#include "memory/offsets/offsets_check.h"

#include <fmt/format.h>

#include <algorithm>

namespace heddle::offsets {
namespace {

Status wrong(const std::string& what) {
  return {Code::internal, fmt::format("the memory plan is wrong: {}", what), "this is a defect of Heddle: please report it with the net"};
}

// Checks that the buffer's own numbers are possible.
Status check_one(const Buffer& buffer, int64_t offset, size_t i, int64_t height) {
  if (offset < 0) return wrong(fmt::format("buffer {} lies at the negative offset {}", i, offset));
  if (buffer.alignment <= 0 || offset % buffer.alignment != 0)
    return wrong(fmt::format("buffer {} lies at {}, which is no multiple of its alignment {}", i, offset, buffer.alignment));
  if (buffer.bytes < 0 || buffer.bytes > INT64_MAX - offset) return wrong(fmt::format("buffer {} ends beyond 63 bits", i));
  if (offset + buffer.bytes > height)
    return wrong(fmt::format("buffer {} ends at {}, above the height of {}", i, offset + buffer.bytes, height));
  return {};
}

bool alive_together(const Problem& problem, size_t a, size_t b) {
  const Buffer& x = problem.buffers[a];
  const Buffer& y = problem.buffers[b];
  if (x.first < y.last && y.first < x.last) return true;
  return problem.interference && problem.interference->interferes(static_cast<uint32_t>(a), static_cast<uint32_t>(b));
}

// Returns the most bytes alive when some buffer is first written, sizes rounded up to the smallest alignment of those alive: the highest
// bound that max_live may claim.
int64_t max_alive(const Problem& problem) {
  int64_t most = 0;
  for (const Buffer& moment : problem.buffers) {
    const auto alive = [&](const Buffer& buffer) { return buffer.bytes > 0 && buffer.first <= moment.first && moment.first < buffer.last; };
    int64_t unit = INT64_MAX;
    for (const Buffer& buffer : problem.buffers)
      if (alive(buffer)) unit = std::min(unit, buffer.alignment);
    int64_t bytes = 0;
    for (const Buffer& buffer : problem.buffers)
      if (alive(buffer)) bytes += (buffer.bytes + unit - 1) / unit * unit;
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

Status check(const Problem& problem, const Solution& solution) {
  const size_t count = problem.buffers.size();
  if (solution.offsets.size() != count) return wrong(fmt::format("{} offsets for {} buffers", solution.offsets.size(), count));
  int64_t top = 0;
  for (size_t i = 0; i < count; ++i) {
    HEDDLE_CHECK(check_one(problem.buffers[i], solution.offsets[i], i, solution.height));
    if (problem.buffers[i].bytes > 0) top = std::max(top, solution.offsets[i] + problem.buffers[i].bytes);
  }
  if (top != solution.height) return wrong(fmt::format("the height is given as {} but the highest byte is {}", solution.height, top));
  if (solution.lower_bound < 0 || solution.lower_bound > solution.height)
    return wrong(fmt::format("the lower bound {} is not within the height {}", solution.lower_bound, solution.height));
  if (solution.lower_bound_kind == LowerBoundKind::max_live && solution.lower_bound > max_alive(problem))
    return wrong(fmt::format("the lower bound {} is more than is ever alive, {}", solution.lower_bound, max_alive(problem)));
  if (!solution.optimal && solution.lower_bound == solution.height)
    return wrong(fmt::format("the height {} equals the lower bound and is not called optimal", solution.height));
  for (size_t a = 0; a < count; ++a) {
    const int64_t a_begin = solution.offsets[a];
    const int64_t a_end = a_begin + problem.buffers[a].bytes;
    for (size_t b = a + 1; b < count; ++b) {
      const int64_t b_begin = solution.offsets[b];
      const int64_t b_end = b_begin + problem.buffers[b].bytes;
      if (a_begin >= b_end || b_begin >= a_end || a_begin == a_end || b_begin == b_end) continue;
      if (alive_together(problem, a, b))
        return wrong(fmt::format("buffers {} and {} share bytes {} to {} while both may be in use", a, b, std::max(a_begin, b_begin),
                                 std::min(a_end, b_end)));
    }
  }
  return {};
}

}  // namespace heddle::offsets
