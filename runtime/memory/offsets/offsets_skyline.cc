#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "memory/offsets/offsets_best_fit.h"

namespace heddle::offsets {
namespace {

// The height reached at each moment: raises a range, returns a range's maximum; both O(log n).
class Skyline {
 public:
  explicit Skyline(size_t moments) : leaves_(moments), highest_(2 * moments, 0), whole_(2 * moments, 0) {}

  int64_t highest(size_t from, size_t to) const {
    int64_t top = 0;
    for (size_t l = (from + leaves_) >> 1; l > 0; l >>= 1) top = std::max(top, whole_[l]);
    for (size_t r = (to - 1 + leaves_) >> 1; r > 0; r >>= 1) top = std::max(top, whole_[r]);
    for (size_t l = from + leaves_, r = to + leaves_; l < r; l >>= 1, r >>= 1) {
      if (l & 1) top = std::max(top, highest_[l++]);
      if (r & 1) top = std::max(top, highest_[--r]);
    }
    return top;
  }
  void raise(size_t from, size_t to, int64_t height) {
    for (size_t l = from + leaves_, r = to + leaves_; l < r; l >>= 1, r >>= 1) {
      if (l & 1) cover(l++, height);
      if (r & 1) cover(--r, height);
    }
    settle_above(from + leaves_);
    settle_above(to - 1 + leaves_);
  }

 private:
  void cover(size_t node, int64_t height) {
    highest_[node] = std::max(highest_[node], height);
    whole_[node] = std::max(whole_[node], height);
  }
  void settle_above(size_t node) {
    while (node >>= 1) highest_[node] = std::max({highest_[2 * node], highest_[2 * node + 1], whole_[node]});
  }

  size_t leaves_;
  std::vector<int64_t> highest_;  // highest within the node's range
  std::vector<int64_t> whole_;    // raised over the whole range; in the node alone, not in those below it
};

// One moment for each different first step: the skyline is the same between two of them.
struct Moments {
  std::vector<int64_t> times;
  size_t at(int64_t time) const { return std::lower_bound(times.begin(), times.end(), time) - times.begin(); }
};

}  // namespace

int64_t pack_skyline(const Items& items, SkylineOrder order, Effort* effort, std::span<int64_t> offsets) {
  constexpr int64_t operations = 50;  // about what it costs to place one item
  if (!effort->poll(0)) return INT64_MAX;
  Moments moments;
  for (const Buffer& buffer : items.buffers)
    if (moments.times.empty() || moments.times.back() != buffer.first) moments.times.push_back(buffer.first);
  struct Entry {
    double rank;
    uint32_t item;
  };
  std::vector<Entry> entries(items.size());
  for (uint32_t i = 0; i < items.size(); ++i) {
    const auto bytes = static_cast<double>(items.buffers[i].bytes);
    const double life = static_cast<double>(items.settled[i]) - static_cast<double>(items.buffers[i].first);
    entries[i] = {order == SkylineOrder::longest_life ? life : life * bytes, i};
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.rank != b.rank ? a.rank > b.rank : a.item < b.item; });
  Skyline skyline(moments.times.size());
  int64_t height = 0;
  for (const Entry& entry : entries) {
    if (!effort->poll(operations)) return INT64_MAX;
    const Buffer& buffer = items.buffers[entry.item];
    const size_t from = moments.at(buffer.first);
    const size_t to = moments.at(items.settled[entry.item]);
    const int64_t offset = align_up(skyline.highest(from, to), buffer.alignment);
    skyline.raise(from, to, offset + buffer.bytes);
    offsets[entry.item] = offset;
    height = std::max(height, offset + buffer.bytes);
  }
  return height;
}

}  // namespace heddle::offsets
