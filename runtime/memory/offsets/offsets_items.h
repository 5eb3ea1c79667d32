// Items: the buffers of one part of a packing problem, in the order of their first steps. Shared by the planner's files; private.
//
// A part is closed: none of its buffers interferes with one outside, so parts are packed apart, each from offset 0. Buffers of no bytes
// are in no part. Indices are local to the part (0 .. size-1); `ids` maps them to the problem's.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "memory/offsets/offsets.h"

namespace heddle::offsets {

struct Items {
  std::span<const Buffer> buffers;             // ascending by (first, id)
  std::span<const uint32_t> ids;               // in the problem
  std::span<const int64_t> settled;            // Interference::settled, or `last`
  const Interference* interference = nullptr;  // null: intervals

  size_t size() const { return buffers.size(); }
  // Takes local indices; exact.
  bool interferes(size_t a, size_t b) const {
    if (buffers[a].first < buffers[b].last && buffers[b].first < buffers[a].last) return true;
    return interference != nullptr && interference->interferes(ids[a], ids[b]);
  }
};

// All parts of a problem: one sorted copy of its buffers, cut into ranges.
struct Parts {
  std::vector<Buffer> buffers;
  std::vector<uint32_t> ids;
  std::vector<int64_t> settled;
  std::vector<size_t> begin;  // part p is [begin[p], begin[p + 1])
  const Interference* interference = nullptr;

  size_t size() const { return begin.size() - 1; }
  Items part(size_t p) const;
};
Parts split_into_parts(const Problem& problem);

// Returns the most bytes alive at one step; no packing is lower. Offsets are multiples of the smallest alignment, so sizes count rounded up
// to it (less what one buffer, the topmost, need not fill).
int64_t max_live_bytes(const Items& items);

// The effort that may still be spent; counts down, deterministically, and polls `stop` now and then.
class Effort {
 public:
  Effort(int64_t units, const std::function<bool()>* stop) : left_(units), stop_(stop) {}
  // Spends `units` elementary operations. Returns false when nothing is left.
  bool spend(int64_t units) {
    left_ -= units;
    return left_ > 0 && poll(units);
  }
  // For work that is done whatever the effort: returns false when `stop` returned true. Spends nothing.
  bool poll(int64_t units) {
    if (stopped_) return false;
    until_poll_ -= units;
    if (until_poll_ > 0) return true;
    until_poll_ = poll_interval;
    stopped_ = stop_ != nullptr && *stop_ && (*stop_)();
    if (stopped_) left_ = 0;
    return !stopped_;
  }
  int64_t left() const { return left_ > 0 ? left_ : 0; }
  // Runs work(Effort&) with at most `units` of this effort and subtracts what it used.
  template <class Work>
  auto share(int64_t units, Work&& work) {
    const int64_t given = units < left() ? units : left();
    Effort part(given, stop_);
    part.until_poll_ = until_poll_;
    part.stopped_ = stopped_;
    auto result = work(part);
    left_ = part.stopped_ ? 0 : left_ - (given - part.left());
    until_poll_ = part.until_poll_;
    stopped_ = part.stopped_;
    return result;
  }

 private:
  static constexpr int64_t poll_interval = 1'000'000;
  int64_t left_;
  int64_t until_poll_ = poll_interval;
  bool stopped_ = false;
  const std::function<bool()>* stop_;
};

// Interfering pairs as adjacency lists: the neighbours of i are list[begin[i] .. begin[i + 1]), ascending.
struct Conflicts {
  std::vector<uint32_t> begin;
  std::vector<uint32_t> list;
  std::span<const uint32_t> of(size_t i) const { return {list.data() + begin[i], list.data() + begin[i + 1]}; }
};
// Returns false when there are more than `limit` pairs to look at, or `effort` is stopped meanwhile (then `conflicts` is empty).
bool find_conflicts(const Items& items, int64_t limit, Effort* effort, Conflicts* conflicts);

}  // namespace heddle::offsets
