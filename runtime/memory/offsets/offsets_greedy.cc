#include "memory/offsets/offsets_greedy.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "memory/offsets/offsets_dice.h"

namespace heddle::offsets {
namespace {

template <class Key>
std::vector<uint32_t> descending(size_t count, Key key) {
  std::vector<std::pair<double, uint32_t>> ranked(count);
  for (uint32_t i = 0; i < count; ++i) ranked[i] = {-key(i), i};
  std::sort(ranked.begin(), ranked.end());
  std::vector<uint32_t> order(count);
  for (size_t i = 0; i < count; ++i) order[i] = ranked[i].second;
  return order;
}

}  // namespace

std::vector<NamedOrder> greedy_orders(const Items& items, const Conflicts& conflicts) {
  const auto bytes = [&](uint32_t i) { return static_cast<double>(items.buffers[i].bytes); };
  const auto life = [&](uint32_t i) { return static_cast<double>(items.settled[i]) - static_cast<double>(items.buffers[i].first); };
  std::vector<double> load(items.size());  // bytes of all items that interfere with it
  for (uint32_t i = 0; i < items.size(); ++i) {
    load[i] = bytes(i);
    for (const uint32_t other : conflicts.of(i)) load[i] += bytes(other);
  }
  std::vector<NamedOrder> orders;
  orders.push_back({"greedy by area", descending(items.size(), [&](uint32_t i) { return bytes(i) * life(i); })});
  orders.push_back({"greedy by size", descending(items.size(), bytes)});
  orders.push_back({"greedy by life", descending(items.size(), life)});
  orders.push_back({"greedy by load", descending(items.size(), [&](uint32_t i) { return load[i]; })});
  orders.push_back({"greedy by first step", descending(items.size(), [](uint32_t i) { return -static_cast<double>(i); })});
  return orders;
}

int64_t Greedy::pass(std::span<const uint32_t> order, Gap gap, Effort* effort) {
  std::fill(offsets_.begin(), offsets_.end(), -1);
  int64_t height = 0;
  for (const uint32_t item : order) {
    if (!effort->poll(12 * static_cast<int64_t>(1 + conflicts_.of(item).size()))) return INT64_MAX;
    offsets_[item] = place(item, gap);
    height = std::max(height, offsets_[item] + items_.buffers[item].bytes);
  }
  return height;
}

int64_t Greedy::place(uint32_t item, Gap gap) {
  taken_.clear();
  for (const uint32_t other : conflicts_.of(item))
    if (offsets_[other] >= 0) taken_.emplace_back(offsets_[other], offsets_[other] + items_.buffers[other].bytes);
  std::sort(taken_.begin(), taken_.end());
  const int64_t bytes = items_.buffers[item].bytes;
  const int64_t alignment = items_.buffers[item].alignment;
  int64_t top = 0;
  int64_t best = -1;
  int64_t best_slack = INT64_MAX;
  for (const auto& [begin, end] : taken_) {
    const int64_t offset = align_up(top, alignment);
    if (begin - offset >= bytes && begin - top < best_slack) {
      if (gap == Gap::lowest) return offset;
      best = offset;
      best_slack = begin - top;
    }
    top = std::max(top, end);
  }
  return best >= 0 ? best : align_up(top, alignment);
}

namespace {

// One hill climb: the order that led to the lowest packing so far, and how to change it.
class Climb {
 public:
  Climb(const Items& items, const Conflicts& conflicts, std::vector<uint32_t> order)
      : items_(items), conflicts_(conflicts), greedy_(items, conflicts), order_(std::move(order)), rank_(order_.size()) {}

  void run(int64_t target, Effort* effort, Packing* best) {
    const int64_t cost = 12 * static_cast<int64_t>(items_.size() + conflicts_.list.size());
    int64_t current = greedy_.pass(order_, Gap::lowest, effort);
    keep(current, best);
    std::vector<uint32_t> tried;
    while (best->height > target && effort->spend(cost)) {
      tried = order_;
      disturb(&tried, current);
      const int64_t height = greedy_.pass(tried, Gap::lowest, effort);
      keep(height, best);
      // Sideways steps leave plateaus; a small chance of a step up leaves local minima.
      if (height <= current || dice_.below(200) == 0) {
        current = height;
        order_.swap(tried);
        offsets_of_order_.assign(greedy_.offsets().begin(), greedy_.offsets().end());
      }
    }
  }

 private:
  void keep(int64_t height, Packing* best) {
    if (offsets_of_order_.empty()) offsets_of_order_.assign(greedy_.offsets().begin(), greedy_.offsets().end());
    if (height >= best->height) return;
    best->height = height;
    best->offsets.assign(greedy_.offsets().begin(), greedy_.offsets().end());
    best->method = "repair";
  }
  // Swaps two places of the order, among the items that make up the height (the topmost, those that carry it, some that touch those).
  void disturb(std::vector<uint32_t>* order, int64_t height) {
    tower_.clear();
    for (uint32_t i = 0; i < items_.size(); ++i)
      if (offsets_of_order_[i] + items_.buffers[i].bytes == height) tower_.push_back(i);
    const size_t top = tower_.size();
    for (size_t t = 0; t < tower_.size() && tower_.size() < 64; ++t) {
      for (const uint32_t other : conflicts_.of(tower_[t])) {
        const int64_t end = offsets_of_order_[other] + items_.buffers[other].bytes;
        if (align_up(end, items_.buffers[tower_[t]].alignment) == offsets_of_order_[tower_[t]] &&
            std::find(tower_.begin(), tower_.end(), other) == tower_.end())
          tower_.push_back(other);
      }
    }
    for (uint32_t i = 0; i < order->size(); ++i) rank_[(*order)[i]] = i;
    const uint32_t moved = dice_.below(2) == 0 ? tower_[dice_.below(top)] : tower_[dice_.below(tower_.size())];
    const std::span<const uint32_t> near = conflicts_.of(moved);
    const uint32_t other = near.empty() || dice_.below(3) == 0 ? tower_[dice_.below(tower_.size())] : near[dice_.below(near.size())];
    if (dice_.below(2) == 0) {
      std::swap((*order)[rank_[moved]], (*order)[rank_[other]]);
    } else if (rank_[other] < rank_[moved]) {  // raise it to just before the other
      std::rotate(order->begin() + rank_[other], order->begin() + rank_[moved], order->begin() + rank_[moved] + 1);
    } else {
      std::rotate(order->begin() + rank_[moved], order->begin() + rank_[moved] + 1, order->begin() + rank_[other] + 1);
    }
  }

  const Items& items_;
  const Conflicts& conflicts_;
  Greedy greedy_;
  Dice dice_;
  std::vector<uint32_t> order_, rank_, tower_;
  std::vector<int64_t> offsets_of_order_;
};

}  // namespace

void climb(const Items& items, const Conflicts& conflicts, std::vector<uint32_t> order, int64_t target, Effort* effort, Packing* best) {
  Climb(items, conflicts, std::move(order)).run(target, effort, best);
}

}  // namespace heddle::offsets
