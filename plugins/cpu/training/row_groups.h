// Groups the positions of indices that name the same row of a table, in their order, and helps to plan updates by such groups. It uses
// memory that was planned, and a hash table that is no larger than the given indices need.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "shared/axes.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// The rows that tiles [begin, end) of `tiles` own: those whose hashes lie in a range. Neighbouring rows belong to different tiles.
class OwnedRows {
 public:
  OwnedRows(int64_t begin, int64_t end, int64_t tiles) : first_(first_of(begin, tiles)), count_(first_of(end, tiles) - first_) {}
  bool has(int64_t row) const { return (spread(row) >> 32) - first_ < count_; }
  static uint64_t spread(int64_t row) { return static_cast<uint64_t>(row) * 0x9e3779b97f4a7c15u; }

 private:
  static uint64_t first_of(int64_t tile, int64_t tiles) {
    return ((static_cast<uint64_t>(tile) << 32) + static_cast<uint64_t>(tiles) - 1) / static_cast<uint64_t>(tiles);
  }
  uint64_t first_, count_;
};

class RowGroups {
 public:
  static constexpr int64_t max_indices = int64_t{1} << 30;
  static uint64_t bytes(int64_t indices) {
    const auto n = static_cast<uint64_t>(indices);
    return static_cast<uint64_t>(slots_for(indices)) * sizeof(Slot) + 2 * n * sizeof(int32_t);
  }
  RowGroups(void* memory, const heddle_tensor& indices, int64_t rows) : memory_(memory), indices_(indices), rows_(rows) {}

  // Finds the groups of `rows`. All indices are checked: one outside is an error in every tile, so that no tile writes anything.
  Status find(const OwnedRows& rows, CancellationPoll& poll) {
    next_ = static_cast<int32_t*>(memory_);
    used_ = next_ + indices_.element_count;
    if (indices_.dtype == HEDDLE_I32) return group(static_cast<const int32_t*>(indices_.data), rows, poll);
    return group(static_cast<const int64_t*>(indices_.data), rows, poll);
  }
  // The named rows, in the order in which they first occur, and the positions of one. The hash table only joins positions of one row:
  // groups are read in the order of positions.
  int64_t count() const { return count_; }
  int64_t row(int64_t group) const { return row_at(used_[group]); }
  int32_t first(int64_t group) const { return used_[group]; }
  // Returns the next position of the same row; none: that was the last.
  int32_t behind(int32_t position) const { return next_[position]; }

  static constexpr int32_t none = -1;

 private:
  struct Slot {
    int32_t first, last;
  };
  // Rows of one tile are hashed to slots with another factor.
  static uint64_t hash(int64_t row) { return (OwnedRows::spread(row) ^ (OwnedRows::spread(row) >> 32)) * 0xd6e8feb86659fd93u; }

  template <class T>
  Status group(const T* indices, const OwnedRows& rows, CancellationPoll& poll) {
    int64_t owned = 0;
    if (!list_owned(indices, rows, poll, &owned)) return outside();
    if (poll.stopped()) return cancelled();
    slots_ = reinterpret_cast<Slot*>(used_ + indices_.element_count);
    slot_count_ = slots_for(owned);
    shift_ = 64;
    for (int64_t c = slot_count_; c > 1; c /= 2) --shift_;
    fill_cancellable(slots_, slot_count_, Slot{none, none}, poll);
    // The list of positions is read before groups take its place.
    constexpr int64_t ahead = 8;
    for (int64_t i = 0; i < owned && !poll.stops(8); ++i) {
      if (i + ahead < owned) __builtin_prefetch(slots_ + slot_of(resolved(indices[used_[i + ahead]])), 1);
      insert(indices, used_[i]);
    }
    return poll.status();
  }
  // Puts the positions of owned rows into used_; false: some index is outside. Without branches, as every tile does it for all indices.
  template <class T>
  bool list_owned(const T* indices, OwnedRows rows, CancellationPoll& poll, int64_t* owned) {
    constexpr int64_t stretch = 4096;
    const int64_t n = indices_.element_count;
    int64_t count = 0;
    uint64_t outside = 0;  // its sign bit: a row is below 0 or past the last one
    for (int64_t first = 0; first < n && !poll.stops(2 * stretch); first += stretch)
      for (int64_t i = first; i < std::min(n, first + stretch); ++i) {
        const int64_t row = resolved(indices[i]);
        outside |= static_cast<uint64_t>(row) | (static_cast<uint64_t>(rows_) - 1 - static_cast<uint64_t>(row));
        used_[count] = static_cast<int32_t>(i);
        count += rows.has(row) ? 1 : 0;
      }
    *owned = count;
    return static_cast<int64_t>(outside) >= 0;
  }
  Status outside() const {
    int64_t i = 0;
    for (int64_t row = integer_at(indices_, 0); resolve_index(&row, rows_);) row = integer_at(indices_, ++i);
    return index_outside(integer_at(indices_, i), rows_, 0);
  }
  static int64_t slots_for(int64_t indices) {
    int64_t slots = 2;
    while (slots < 2 * indices) slots *= 2;
    return slots;
  }
  int64_t row_at(int64_t position) const { return resolved(integer_at(indices_, position)); }
  // Converts an index that counts from the end to one from the beginning.
  int64_t resolved(int64_t index) const { return index < 0 ? index + rows_ : index; }
  int64_t slot_of(int64_t row) const { return static_cast<int64_t>(hash(row) >> shift_); }
  template <class T>
  void insert(const T* indices, int32_t position) {
    const int64_t row = resolved(indices[position]);
    next_[position] = none;
    int64_t at = slot_of(row);
    while (slots_[at].first != none && resolved(indices[slots_[at].first]) != row) at = at + 1 == slot_count_ ? 0 : at + 1;
    Slot& slot = slots_[at];
    if (slot.first == none) {
      slot.first = position;
      used_[count_++] = position;
    } else {
      next_[slot.last] = position;
    }
    slot.last = position;
  }

  void* memory_;
  const heddle_tensor& indices_;
  const int64_t rows_;
  Slot* slots_ = nullptr;
  int32_t *next_ = nullptr, *used_ = nullptr;
  int64_t count_ = 0, slot_count_ = 0;
  int shift_ = 64;
};

// The number of tiles for the rows that so many indices name, each of which moves `bytes_of_index`. Every tile reads all indices: more
// tiles than the length of a row justifies would not pay, except for those that the marks of tile_cap.h require.
inline int64_t row_tiles(int64_t indices, double bytes_of_index) {
  const double bytes = static_cast<double>(indices) * bytes_of_index, weighted = 2 * bytes;
  const auto worth = static_cast<int64_t>(bytes_of_index / 128);
  const auto tuned = static_cast<int64_t>(std::min(weighted / (2.0 * static_cast<double>(tile_bytes)), static_cast<double>(max_tiles)));
  return std::max({int64_t{1}, std::min(tuned, std::max<int64_t>(4, worth)), min_tiles(weighted, bytes)});
}

// [cost] Bytes moved by an update that reads and writes `moved` rows for each index, and reads the indices.
inline double row_update_bytes(const heddle_tensor& table, const heddle_tensor& indices, double moved) {
  const double rows = table.rank > 0 ? std::max(1.0, static_cast<double>(table.dims[0])) : 1;
  return moved * static_cast<double>(indices.element_count) * static_cast<double>(table.byte_size) / rows +
         static_cast<double>(indices.byte_size);
}

// Rounds up: a row that is shorter than a cache line costs as much as the whole line.
inline int64_t whole_lines(int64_t row_bytes) {
  return (row_bytes + 63) / 64 * 64;
}

// [prepare] Plans such an update: its tiles, its cost, and scratch of `scratch` bytes of its own followed by the groups. Only the named
// rows of the table count: its size does not matter.
inline Status plan_row_update(PrepareContext& context, const heddle_tensor& indices, int64_t row_bytes, double moved, int64_t scratch,
                              int64_t* tiles) {
  const int64_t n = indices.element_count;
  const double bytes_of_index = moved * static_cast<double>(whole_lines(row_bytes));
  if (n > RowGroups::max_indices) return unsupported(std::to_string(n) + " indices, more than " + std::to_string(RowGroups::max_indices));
  *tiles = row_tiles(n, bytes_of_index);
  context.set_cost_ns(30.0 + 2 * bytes_of_index * static_cast<double>(n) / bytes_per_ns);
  context.set_tiles(*tiles);
  context.set_scratch(0, static_cast<uint64_t>(scratch) + RowGroups::bytes(n));
  return {};
}

// Copies the `owned` rows of a table to its next version, if that has other memory.
inline void copy_owned_rows(const heddle_tensor& from, const heddle_tensor& to, int64_t rows, const OwnedRows& owned,
                            CancellationPoll& poll) {
  if (from.data == to.data || rows == 0) return;
  const int64_t bytes = static_cast<int64_t>(to.byte_size) / rows;
  for (int64_t row = 0; row < rows && !poll.stops(2); ++row)
    if (owned.has(row))
      copy_cancellable(static_cast<char*>(to.data) + row * bytes, static_cast<const char*>(from.data) + row * bytes, bytes, poll);
}

}  // namespace heddle::cpu
