#include "memory/offsets/offsets_search.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/checked.h"

namespace heddle::offsets {
namespace {

using Word = uint64_t;
using Blame = std::vector<Word>;  // a set of items, as bits

Word bit(uint32_t item) {
  return Word{1} << (item % 64);
}

// One search.
class Search {
 public:
  Search(const SearchSpace& space, const Ranking& ranking, int64_t target, Effort* effort)
      : items_(*space.items),
        conflicts_(*space.conflicts),
        ranking_(ranking),
        count_(items_.size()),
        words_((count_ + 63) / 64),
        target_(target),
        effort_(effort),
        adjacent_(count_ * words_, 0),
        rank_(count_, 0),
        lowest_(count_, 0),
        raised_by_(count_, static_cast<uint32_t>(count_)),
        placed_(count_, -1),
        blame_(words_, 0),
        stacked_(space.cliques.size(), 0) {
    for (uint32_t r = 0; r < count_; ++r)
      for (const uint32_t other : conflicts_.of(r)) adjacent_[r * words_ + other / 64] |= bit(other);
    add_cliques(space);
    find_twins();
  }

  SearchResult run() {
    std::vector<uint32_t> all(count_);
    std::iota(all.begin(), all.end(), 0);
    rank(all);
    SearchOutcome outcome = solve(all, 0, 0);
    if (outcome == SearchOutcome::exhausted && jumped_) {  // jumping back may pass over a packing: proves it again without
      jumping_ = false;
      refuted_ = INT64_MAX;
      outcome = solve(all, 0, 0);
    }
    return {outcome, outcome == SearchOutcome::exhausted ? std::max(target_ + 1, refuted_) : 0};
  }
  void save(Packing* best) const {
    best->offsets.resize(count_);
    best->height = 0;
    best->method = "search";
    for (uint32_t r = 0; r < count_; ++r) {
      best->offsets[r] = placed_[r];
      best->height = std::max(best->height, placed_[r] + bytes(r));
    }
  }

 private:
  struct Change {
    uint32_t item;
    int64_t lowest;      // its lowest offset before; -1: the item was placed
    uint32_t raised_by;  // the item below it before
  };
  struct Candidate {
    int64_t offset;
    uint32_t rank;
    uint32_t item;
    bool operator<(const Candidate& other) const { return offset != other.offset ? offset < other.offset : rank < other.rank; }
  };

  int64_t bytes(uint32_t item) const { return items_.buffers[item].bytes; }
  int64_t aligned(int64_t offset, uint32_t item) const { return align_up(offset, items_.buffers[item].alignment); }

  void add_cliques(const SearchSpace& space) {
    std::vector<std::vector<uint32_t>> of(count_);
    for (uint32_t c = 0; c < space.cliques.size(); ++c)
      for (const uint32_t item : space.cliques[c]) of[item].push_back(c);
    cliques_begin_.assign(count_ + 1, 0);
    for (uint32_t i = 0; i < count_; ++i) {
      cliques_.insert(cliques_.end(), of[i].begin(), of[i].end());
      cliques_begin_[i + 1] = static_cast<uint32_t>(cliques_.size());
    }
  }
  std::span<const uint32_t> cliques_of(uint32_t item) const {
    return {cliques_.data() + cliques_begin_[item], cliques_.data() + cliques_begin_[item + 1]};
  }
  // Items with the same size, alignment and neighbours are interchangeable: they are tried in the order of their indices only.
  void find_twins() {
    twin_before_.assign(count_, count_);
    for (uint32_t i = 0; i < count_; ++i)
      for (const uint32_t other : conflicts_.of(i))
        if (other < i && are_twins(i, other)) twin_before_[i] = other;
  }
  bool are_twins(uint32_t a, uint32_t b) const {
    if (bytes(a) != bytes(b) || items_.buffers[a].alignment != items_.buffers[b].alignment) return false;
    if (conflicts_.of(a).size() != conflicts_.of(b).size()) return false;
    for (size_t w = 0; w < words_; ++w) {
      Word x = adjacent_[a * words_ + w];
      Word y = adjacent_[b * words_ + w];
      if (a / 64 == w) y &= ~bit(a);
      if (b / 64 == w) x &= ~bit(b);
      if (x != y) return false;
    }
    return true;
  }

  // Numbers `open` in the order of the ranking.
  void rank(const std::vector<uint32_t>& open) {
    struct Entry {
      int64_t heaviest;
      double weight;
      uint32_t item;
    };
    std::vector<Entry> entries;
    if (ranking_.heaviest_first) {
      std::fill(stacked_.begin(), stacked_.end(), 0);
      for (const uint32_t item : open)
        for (const uint32_t c : cliques_of(item)) stacked_[c] += bytes(item);
    }
    for (const uint32_t item : open) {
      Entry& entry = entries.emplace_back(Entry{0, ranking_.weight[item], item});
      if (ranking_.heaviest_first)
        for (const uint32_t c : cliques_of(item)) entry.heaviest = std::max(entry.heaviest, stacked_[c]);
      work_ += 8 + 2 * static_cast<int64_t>(cliques_of(item).size());
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
      if (a.heaviest != b.heaviest) return a.heaviest > b.heaviest;
      return a.weight != b.weight ? a.weight > b.weight : a.item < b.item;
    });
    for (uint32_t r = 0; r < entries.size(); ++r) rank_[entries[r].item] = r;
  }

  // Places all of `open` (unplaced, none interferes with an unplaced one outside), from (offset, rank) upwards. Leaves them placed when a
  // packing is found, untouched otherwise.
  SearchOutcome solve(const std::vector<uint32_t>& open, int64_t offset, uint32_t rank) {
    std::vector<Candidate> candidates;
    int64_t ceiling = INT64_MAX;  // from here on another open item would fit below the candidate: not worth trying
    for (const uint32_t item : open) ceiling = std::min(ceiling, lowest_[item] + bytes(item));
    for (const uint32_t item : open) {
      if (lowest_[item] < offset || (lowest_[item] == offset && rank_[item] < rank) || lowest_[item] >= ceiling) continue;
      if (twin_before_[item] != count_ && placed_[twin_before_[item]] < 0) continue;
      candidates.push_back({lowest_[item], rank_[item], item});
    }
    std::sort(candidates.begin(), candidates.end());
    Blame all(words_, candidates.empty() ? ~Word{0} : Word{0});
    for (const Candidate& candidate : candidates) {
      const size_t mark = trail_.size();
      const bool free_standing = place(candidate);
      const SearchOutcome outcome = descend(open, candidate);
      if (outcome == SearchOutcome::found) return outcome;
      undo_to(mark);
      if (outcome == SearchOutcome::spent) return outcome;
      if (jumping_ && !blamed(candidate.item)) {  // the failure does not rest on this item: another one in its stead fails alike
        jumped_ = true;
        return outcome;
      }
      for (size_t w = 0; w < words_; ++w) all[w] |= blame_[w];
      if (free_standing) break;  // it interferes with no unplaced item: no other place for it helps
    }
    for (const Candidate& candidate : candidates) all[candidate.item / 64] &= ~bit(candidate.item);
    blame_.swap(all);
    return SearchOutcome::exhausted;
  }

  // Places the candidate. Returns true when no unplaced item interferes with it.
  bool place(const Candidate& candidate) {
    placed_[candidate.item] = candidate.offset;
    trail_.push_back({candidate.item, -1, 0});
    const int64_t end = candidate.offset + bytes(candidate.item);
    bool alone = true;
    for (const uint32_t other : conflicts_.of(candidate.item)) {
      if (placed_[other] >= 0) continue;
      alone = false;
      if (lowest_[other] >= end) continue;
      trail_.push_back({other, lowest_[other], raised_by_[other]});
      lowest_[other] = aligned(end, other);
      raised_by_[other] = candidate.item;
    }
    work_ += static_cast<int64_t>(conflicts_.of(candidate.item).size());
    return alone;
  }
  void undo_to(size_t mark) {
    for (; trail_.size() > mark; trail_.pop_back()) {
      const Change& change = trail_.back();
      if (change.lowest < 0) {
        placed_[change.item] = -1;
      } else {
        lowest_[change.item] = change.lowest;
        raised_by_[change.item] = change.raised_by;
      }
    }
  }

  // Called after `last` was placed: prunes, or searches the remaining items, group by group.
  SearchOutcome descend(const std::vector<uint32_t>& open, const Candidate& last) {
    std::vector<uint32_t> rest;
    rest.reserve(open.size());
    for (const uint32_t item : open)
      if (placed_[item] < 0) rest.push_back(item);
    work_ += 4 * static_cast<int64_t>(open.size());
    if (rest.empty()) return SearchOutcome::found;
    const bool fits = can_fit(rest, last);
    if (!effort_->spend(work_ + 100)) return SearchOutcome::spent;
    work_ = 0;
    if (!fits) return SearchOutcome::exhausted;
    return solve_groups(std::move(rest), last);
  }

  SearchOutcome solve_groups(std::vector<uint32_t> rest, const Candidate& last) {
    std::vector<Word> open(words_, 0);
    for (const uint32_t item : rest) open[item / 64] |= bit(item);
    std::vector<uint32_t> group;
    std::vector<std::vector<uint32_t>> groups;
    size_t grouped = 0;
    while (grouped < rest.size()) {
      flood(&open, &group);
      grouped += group.size();
      if (groups.empty() && grouped == rest.size()) return solve(rest, last.offset, last.rank + 1);
      groups.push_back(group);
    }
    // The smaller groups fail sooner.
    std::stable_sort(groups.begin(), groups.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
    std::vector<uint32_t> ranks;
    for (const std::vector<uint32_t>& members : groups) {
      ranks.clear();
      for (const uint32_t item : members) ranks.push_back(rank_[item]);
      rank(members);
      const SearchOutcome outcome = solve(members, last.offset, 0);
      for (size_t i = 0; i < members.size(); ++i) rank_[members[i]] = ranks[i];
      if (outcome != SearchOutcome::found) return outcome;  // the caller undoes the groups that were found
    }
    return SearchOutcome::found;
  }
  // Moves one connected group out of `open`.
  void flood(std::vector<Word>* open, std::vector<uint32_t>* group) {
    group->clear();
    size_t w = 0;
    while ((*open)[w] == 0) ++w;
    const auto seed = static_cast<uint32_t>(w * 64 + static_cast<size_t>(std::countr_zero((*open)[w])));
    (*open)[w] &= (*open)[w] - 1;
    group->push_back(seed);
    for (size_t next = 0; next < group->size(); ++next) {
      const Word* row = &adjacent_[(*group)[next] * words_];
      for (size_t v = 0; v < words_; ++v) {
        Word reached = row[v] & (*open)[v];
        (*open)[v] &= ~reached;
        for (; reached != 0; reached &= reached - 1)
          group->push_back(static_cast<uint32_t>(v * 64 + static_cast<size_t>(std::countr_zero(reached))));
      }
    }
    work_ += static_cast<int64_t>(group->size() * (words_ + 4));
  }

  // True if each clique can still end at or below the target. Items that lie below `last` can only be placed on something placed later.
  bool can_fit(const std::vector<uint32_t>& rest, const Candidate& last) {
    int64_t smallest = INT64_MAX;
    for (const uint32_t item : rest) smallest = std::min(smallest, bytes(item));
    order_.clear();
    for (const uint32_t item : rest) {
      int64_t lowest = lowest_[item];
      if (lowest + bytes(item) <= last.offset) {  // it would have fitted below
        blame_.assign(words_, ~Word{0});
        return false;
      }
      if (lowest < last.offset || (lowest == last.offset && rank_[item] < last.rank)) lowest = aligned(last.offset + smallest, item);
      order_.push_back({lowest, rank_[item], item});
    }
    std::sort(order_.begin(), order_.end());
    std::fill(stacked_.begin(), stacked_.end(), 0);
    work_ += 12 * static_cast<int64_t>(order_.size()) + static_cast<int64_t>(stacked_.size());
    for (const Candidate& next : order_) {
      const int64_t size = bytes(next.item);
      for (const uint32_t c : cliques_of(next.item)) {
        stacked_[c] = std::max(stacked_[c], next.offset) + size;
        if (stacked_[c] > target_) return refute(c);
      }
      work_ += static_cast<int64_t>(cliques_of(next.item).size());
    }
    return true;
  }
  // Notes that clique `c` does not fit, and which placed items that rests on: those below the members that are stacked without a gap.
  bool refute(uint32_t c) {
    refuted_ = std::min(refuted_, stacked_[c]);
    blame_.assign(words_, 0);
    int64_t top = 0;
    for (const Candidate& next : order_) {
      const std::span<const uint32_t> cliques = cliques_of(next.item);
      if (!std::binary_search(cliques.begin(), cliques.end(), c)) continue;
      if (next.offset > top) {
        blame_.assign(words_, 0);
        top = next.offset;
      }
      top += bytes(next.item);
      if (const uint32_t below = raised_by_[next.item]; below != count_) blame_[below / 64] |= bit(below);
      if (top > target_) break;
    }
    return false;
  }
  bool blamed(uint32_t item) const { return (blame_[item / 64] & bit(item)) != 0; }

  const Items& items_;
  const Conflicts& conflicts_;
  const Ranking& ranking_;
  const size_t count_, words_;
  const int64_t target_;
  Effort* effort_;
  std::vector<Word> adjacent_;                     // which items interfere, as a bit matrix
  std::vector<uint32_t> cliques_begin_, cliques_;  // the cliques of each item
  std::vector<size_t> twin_before_;                // the twin to be placed first, or count_

  std::vector<uint32_t> rank_;
  std::vector<int64_t> lowest_;      // lowest offset that the placed items leave
  std::vector<uint32_t> raised_by_;  // the placed item that it lies on then, or count_
  std::vector<int64_t> placed_;      // -1: open
  Blame blame_;                      // placed items that the last failure rests on; all where that is not known
  bool jumping_ = true, jumped_ = false;
  std::vector<Change> trail_;
  std::vector<Candidate> order_;
  std::vector<int64_t> stacked_;  // the height of each clique
  int64_t refuted_ = INT64_MAX;   // the least height that pruning ruled out
  int64_t work_ = 0;
};

}  // namespace

SearchResult search(const SearchSpace& space, const Ranking& ranking, int64_t target, Effort* effort, Packing* best) {
  Search one(space, ranking, target, effort);
  const SearchResult result = one.run();
  if (result.outcome == SearchOutcome::found) one.save(best);
  return result;
}

}  // namespace heddle::offsets
