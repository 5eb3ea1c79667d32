#include "memory/offsets/offsets.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <queue>

#include "base/checked.h"
#include "base/text/text.h"
#include "memory/offsets/offsets_best_fit.h"
#include "memory/offsets/offsets_improve.h"

namespace heddle::offsets {
namespace {

Status validate(const Problem& problem) {
  int64_t total = 0;
  if (problem.buffers.size() >= size_t{1} << 31) return {Code::limit_exceeded, "more than 2^31 buffers to plan"};
  for (size_t i = 0; i < problem.buffers.size(); ++i) {
    const Buffer& buffer = problem.buffers[i];
    if (buffer.first >= buffer.last)
      return {Code::invalid_argument, fmt::format("buffer {} lives in [{}, {}), which holds no step", i, buffer.first, buffer.last)};
    if (buffer.bytes < 0) return {Code::invalid_argument, fmt::format("buffer {} has {} bytes", i, buffer.bytes)};
    if (buffer.alignment <= 0 || !std::has_single_bit(static_cast<uint64_t>(buffer.alignment)))
      return {Code::invalid_argument, fmt::format("buffer {} has alignment {}, which is no power of two", i, buffer.alignment)};
    if (!checked_add(total, buffer.bytes, &total) || !checked_add(total, buffer.alignment, &total))
      return {Code::limit_exceeded, fmt::format("the first {} buffers together do not fit in 63 bits", i + 1)};
  }
  return {};
}

// Tries the cheap packings of one part until one reaches `bound`.
void pack_first(const Items& items, int64_t bound, Effort* effort, Packing* best) {
  std::vector<int64_t> offsets(items.size());
  const auto keep = [&](int64_t height, const char* method) {
    if (height >= best->height) return;
    best->height = height;
    best->offsets = offsets;
    best->method = method;
  };
  keep(pack_best_fit(items, effort, offsets), "best fit");
  if (best->height > bound) keep(pack_skyline(items, SkylineOrder::longest_life, effort, offsets), "skyline by life");
  const int64_t cost = 25 * static_cast<int64_t>(items.size()) * std::bit_width(items.size());
  if (best->height > bound && effort->spend(cost))
    keep(pack_skyline(items, SkylineOrder::largest_area, effort, offsets), "skyline by area");
}

// All parts of a problem on the way to its solution.
class Packer {
 public:
  Packer(const Problem& problem, const PackOptions& options)
      : problem_(problem), parts_(split_into_parts(problem)), effort_(options.effort, &options.stop) {
    if (options.capacity != INT64_MAX) capacity_ = options.capacity;
  }

  Solution run() {
    solution_.offsets.assign(problem_.buffers.size(), 0);
    if (problem_.known_lower_bound > 0) {
      solution_.lower_bound = problem_.known_lower_bound;
      solution_.lower_bound_kind = LowerBoundKind::antichain;
    }
    for (size_t p = 0; p < parts_.size(); ++p) raise_bound(max_live_bytes(parts_.part(p)));
    for (size_t p = 0; p < parts_.size(); ++p) {
      Packing first;
      pack_first(parts_.part(p), goal(), &effort_, &first);
      store(p, first);
      if (first.height > goal()) high_.push({first.height, p, nullptr});
    }
    lower_highest();
    finish();
    return std::move(solution_);
  }

 private:
  // A part whose packing is higher than the lower bound of the whole.
  struct High {
    int64_t height;
    size_t part;
    std::shared_ptr<Improver> improver;  // set once the part was worked on
    bool operator<(const High& other) const { return height != other.height ? height < other.height : part > other.part; }
  };

  // Returns the height that need not be lowered further.
  int64_t goal() const { return std::max(solution_.lower_bound, capacity_); }
  void raise_bound(int64_t bound) {
    if (bound <= solution_.lower_bound) return;
    solution_.lower_bound = bound;
    solution_.lower_bound_kind = LowerBoundKind::max_live;
  }
  void store(size_t p, const Packing& packing) {
    const Items items = parts_.part(p);
    for (size_t i = 0; i < items.size(); ++i) solution_.offsets[items.ids[i]] = packing.offsets[i];
    methods_.resize(parts_.size());
    methods_[p] = packing.method;
  }
  Packing stored(const High& high) const {
    const Items items = parts_.part(high.part);
    Packing packing{{}, high.height, methods_[high.part]};
    for (const uint32_t id : items.ids) packing.offsets.push_back(solution_.offsets[id]);
    return packing;
  }
  // Works on the highest part, until it is no longer the highest, or is as low as its own bound, or effort ends.
  void lower_highest() {
    while (!high_.empty() && high_.top().height > goal() && effort_.left() > 0) {
      High high = high_.top();
      if (!high.improver) high.improver = std::make_shared<Improver>(parts_.part(high.part), stored(high));
      if (high.height <= high.improver->proven()) break;
      if (!high.improver->step(goal(), &effort_)) break;
      high_.pop();
      high.height = high.improver->best().height;
      store(high.part, high.improver->best());
      high_.push(std::move(high));
    }
  }
  void finish() {
    for (size_t p = 0; p < parts_.size(); ++p) {
      int64_t height = 0;
      for (const uint32_t id : parts_.part(p).ids) height = std::max(height, solution_.offsets[id] + problem_.buffers[id].bytes);
      if (height <= solution_.height) continue;
      solution_.height = height;
      solution_.method = methods_[p];
    }
    const bool proven = !high_.empty() && high_.top().improver && high_.top().height <= high_.top().improver->proven();
    solution_.optimal = solution_.height <= solution_.lower_bound || proven;
  }

  const Problem& problem_;
  Parts parts_;
  int64_t capacity_ = 0;  // 0: none is given
  Effort effort_;
  Solution solution_;
  std::vector<const char*> methods_;  // the method of each part
  std::priority_queue<High> high_;
};

}  // namespace

Status fits(const Solution& solution, int64_t capacity) {
  if (solution.height <= capacity) return {};
  return {Code::limit_exceeded,
          fmt::format("the buffers need {} bytes ({}) and the capacity is {} ({})", solution.height, human_bytes(solution.height), capacity,
                      human_bytes(capacity)),
          solution.optimal ? "no packing is lower: raise the capacity"
                           : fmt::format("{} is the smallest height known, {} a lower bound: raise the capacity or the effort",
                                         solution.height, solution.lower_bound)};
}

Result<Solution> pack(const Problem& problem, const PackOptions& options) {
  HEDDLE_CHECK(validate(problem), "while planning memory");
  Solution solution = Packer(problem, options).run();
  HEDDLE_CHECK(fits(solution, options.capacity), "while planning memory");
  return solution;
}

}  // namespace heddle::offsets
