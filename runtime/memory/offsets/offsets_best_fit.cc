#include "memory/offsets/offsets_best_fit.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/checked.h"

namespace heddle::offsets {
namespace {

constexpr int32_t none = -1;

// The slab as the steps pass: pieces in address order, without holes. A piece belongs to the buffer that used its bytes last (which,
// "before" being transitive, represents all that used them earlier), or to none.
class Slab {
 public:
  explicit Slab(const Items& items) : items_(items), pieces_of_(items.size(), none) {}

  int64_t height() const { return top_; }

  // Marks `item` as dead in the serial order: its bytes may be given to the items that it is before.
  void retire(uint32_t item) {
    for (int32_t p = pieces_of_[item]; p != none; p = pieces_[p].same_next) {
      pieces_[p].state = State::retired;
      retired_.insert(key(p));
    }
  }
  // Marks `item` as dead in every execution: its bytes are free and join their neighbours.
  void release(uint32_t item) {
    while (pieces_of_[item] != none) {
      const int32_t p = pieces_of_[item];
      if (pieces_[p].state == State::retired) retired_.erase(key(p));
      disown(p);
      pieces_[p].state = State::free;
      join_free_neighbours(p);
    }
  }
  int64_t place(uint32_t item) {
    const Buffer& buffer = items_.buffers[item];
    int32_t piece = smallest_free(buffer);
    if (const int32_t dead = smallest_retired(item); dead != none && (piece == none || pieces_[dead].bytes < pieces_[piece].bytes))
      piece = dead;
    if (piece == none && !retired_.empty()) piece = smallest_run(item);
    if (piece == none) piece = top_run(item);
    const int64_t offset = align_up(piece == none ? top_ : pieces_[piece].offset, buffer.alignment);
    if (offset + buffer.bytes > top_) {
      grow_to(offset + buffer.bytes);
      piece = last_;  // growing may have joined the piece that was found
    }
    take(item, piece, offset);
    return offset;
  }

 private:
  enum class State : uint8_t { used, retired, free };
  struct Piece {
    int64_t offset, bytes;
    int32_t below = none, above = none;              // neighbours in the slab
    int32_t same_previous = none, same_next = none;  // pieces of the same owner
    int32_t owner = none;
    State state = State::free;
  };
  using Key = std::pair<int64_t, int32_t>;  // bytes, piece
  static constexpr int tries = 64;
  static constexpr int run_tries = 512;

  Key key(int32_t p) const { return {pieces_[p].bytes, p}; }
  static bool holds(const Piece& piece, const Buffer& buffer) {
    return align_up(piece.offset, buffer.alignment) + buffer.bytes <= piece.offset + piece.bytes;
  }

  int32_t smallest_free(const Buffer& buffer) const {
    int left = tries;
    for (auto it = free_.lower_bound({buffer.bytes, 0}); it != free_.end() && left-- > 0; ++it)
      if (holds(pieces_[it->second], buffer)) return it->second;
    return none;
  }
  bool usable(int32_t p, uint32_t item) const {
    const Piece& piece = pieces_[p];
    if (piece.state == State::free) return true;
    return piece.state == State::retired && !items_.interferes(piece.owner, item);
  }
  int32_t smallest_retired(uint32_t item) const {
    int left = tries;
    for (auto it = retired_.lower_bound({items_.buffers[item].bytes, 0}); it != retired_.end() && left-- > 0; ++it)
      if (holds(pieces_[it->second], items_.buffers[item]) && usable(it->second, item)) return it->second;
    return none;
  }
  // Returns the first piece of the shortest run of usable neighbours that holds `item`; looks at the lowest pieces only when there are
  // many.
  int32_t smallest_run(uint32_t item) const {
    const Buffer& buffer = items_.buffers[item];
    int32_t best = none;
    int64_t best_bytes = INT64_MAX;
    int left = run_tries;
    for (int32_t p = first_; p != none && left-- > 0; p = pieces_[p].above) {
      if (!usable(p, item)) continue;
      const int32_t start = p;
      int64_t end = pieces_[p].offset + pieces_[p].bytes;
      while (pieces_[p].above != none && left-- > 0 && usable(pieces_[p].above, item)) {
        p = pieces_[p].above;
        end = pieces_[p].offset + pieces_[p].bytes;
      }
      const int64_t begin = pieces_[start].offset;
      if (align_up(begin, buffer.alignment) + buffer.bytes <= end && end - begin < best_bytes) {
        best = start;
        best_bytes = end - begin;
      }
    }
    return best;
  }
  // Returns the lowest piece of the usable run that ends at the top, or none.
  int32_t top_run(uint32_t item) const {
    int32_t lowest = none;
    for (int32_t p = last_; p != none && usable(p, item); p = pieces_[p].below) lowest = p;
    return lowest;
  }

  int32_t make(int64_t offset, int64_t bytes) {
    if (spare_.empty()) {
      pieces_.push_back({offset, bytes});
      return static_cast<int32_t>(pieces_.size()) - 1;
    }
    const int32_t p = spare_.back();
    spare_.pop_back();
    pieces_[p] = {offset, bytes};
    return p;
  }
  void own(int32_t p, uint32_t item) {
    pieces_[p].owner = static_cast<int32_t>(item);
    pieces_[p].same_previous = none;
    pieces_[p].same_next = pieces_of_[item];
    if (pieces_of_[item] != none) pieces_[pieces_of_[item]].same_previous = p;
    pieces_of_[item] = p;
  }
  void disown(int32_t p) {
    Piece& piece = pieces_[p];
    if (piece.owner == none) return;
    if (piece.same_previous != none)
      pieces_[piece.same_previous].same_next = piece.same_next;
    else
      pieces_of_[piece.owner] = piece.same_next;
    if (piece.same_next != none) pieces_[piece.same_next].same_previous = piece.same_previous;
    piece.owner = none;
  }
  void unlist(int32_t p) {
    if (pieces_[p].state == State::free) free_.erase(key(p));
    if (pieces_[p].state == State::retired) retired_.erase(key(p));
  }
  void list(int32_t p) {
    if (pieces_[p].state == State::free) free_.insert(key(p));
    if (pieces_[p].state == State::retired) retired_.insert(key(p));
  }
  void link_above(int32_t p, int32_t added) {
    const int32_t above = p == none ? none : pieces_[p].above;
    pieces_[added].below = p;
    pieces_[added].above = above;
    (p == none ? first_ : pieces_[p].above) = added;
    (above == none ? last_ : pieces_[above].below) = added;
  }
  void unlink(int32_t p) {
    const Piece& piece = pieces_[p];
    (piece.below == none ? first_ : pieces_[piece.below].above) = piece.above;
    (piece.above == none ? last_ : pieces_[piece.above].below) = piece.below;
    spare_.push_back(p);
  }
  // Joins `p` with its free neighbours. `p` must be free, have no owner and not be listed yet.
  void join_free_neighbours(int32_t p) {
    if (const int32_t above = pieces_[p].above; above != none && pieces_[above].state == State::free) {
      unlist(above);
      pieces_[p].bytes += pieces_[above].bytes;
      unlink(above);
    }
    if (const int32_t below = pieces_[p].below; below != none && pieces_[below].state == State::free) {
      unlist(below);
      pieces_[p].offset = pieces_[below].offset;
      pieces_[p].bytes += pieces_[below].bytes;
      unlink(below);
    }
    list(p);
  }
  void grow_to(int64_t end) {
    const int32_t p = make(top_, end - top_);
    link_above(last_, p);
    top_ = end;
    join_free_neighbours(p);
  }
  // Cuts `p` (not used) at `offset` within it and returns the upper part.
  int32_t cut(int32_t p, int64_t offset) {
    unlist(p);
    const int32_t upper = make(offset, pieces_[p].offset + pieces_[p].bytes - offset);
    pieces_[p].bytes = offset - pieces_[p].offset;
    pieces_[upper].state = pieces_[p].state;
    if (pieces_[p].owner != none) own(upper, static_cast<uint32_t>(pieces_[p].owner));
    link_above(p, upper);
    list(p);
    list(upper);
    return upper;
  }
  // Gives [offset, offset + bytes) to `item`; `p` must lie at or below `offset`, and all pieces in the range must be usable.
  void take(uint32_t item, int32_t p, int64_t offset) {
    const int64_t end = offset + items_.buffers[item].bytes;
    while (pieces_[p].offset > offset) p = pieces_[p].below;
    while (pieces_[p].offset + pieces_[p].bytes <= offset) p = pieces_[p].above;
    if (pieces_[p].offset < offset) p = cut(p, offset);
    while (pieces_[p].offset + pieces_[p].bytes < end) {
      const int32_t above = pieces_[p].above;
      if (pieces_[above].offset + pieces_[above].bytes > end) cut(above, end);
      unlist(p);
      unlist(above);
      pieces_[p].bytes += pieces_[above].bytes;
      disown(above);
      unlink(above);
      list(p);
    }
    if (pieces_[p].offset + pieces_[p].bytes > end) cut(p, end);
    unlist(p);
    disown(p);
    pieces_[p].state = State::used;
    own(p, item);
  }

  const Items& items_;
  std::vector<Piece> pieces_;
  std::vector<int32_t> spare_;
  std::vector<int32_t> pieces_of_;  // the first piece of each item
  std::set<Key> free_, retired_;
  int32_t first_ = none, last_ = none;
  int64_t top_ = 0;
};

std::vector<uint32_t> sorted_by(std::span<const int64_t> keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return keys[a] != keys[b] ? keys[a] < keys[b] : a < b; });
  return order;
}

}  // namespace

int64_t pack_best_fit(const Items& items, Effort* effort, std::span<int64_t> offsets) {
  constexpr int64_t operations = 400;  // about what it costs to place one item
  Slab slab(items);
  const std::vector<uint32_t> by_settled = sorted_by(items.settled);
  std::vector<uint32_t> by_last;
  if (items.interference != nullptr) {
    std::vector<int64_t> last(items.size());
    for (size_t i = 0; i < items.size(); ++i) last[i] = items.buffers[i].last;
    by_last = sorted_by(last);
  }
  size_t retired = 0, released = 0;
  int64_t top = -1;  // the top of the items that are placed without a search
  for (uint32_t i = 0; i < items.size(); ++i) {
    if (!effort->poll(operations)) {
      offsets[i] = align_up(top < 0 ? slab.height() : top, items.buffers[i].alignment);
      top = offsets[i] + items.buffers[i].bytes;
      continue;
    }
    const int64_t now = items.buffers[i].first;
    for (; retired < by_last.size() && items.buffers[by_last[retired]].last <= now; ++retired) slab.retire(by_last[retired]);
    for (; items.settled[by_settled[released]] <= now; ++released) slab.release(by_settled[released]);
    offsets[i] = slab.place(i);
  }
  return std::max(top, slab.height());
}

}  // namespace heddle::offsets
