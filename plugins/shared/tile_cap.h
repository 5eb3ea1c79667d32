// Limits of the work of one tile, and cancellation checks for work that can not be divided into tiles.
//
// Deadlines and cancellation are checked between tiles: a tile that took minutes would keep a run for minutes. So a kernel makes as many
// tiles as its tuning wants, but never so few that one of them exceeds these marks (about 20 to 250 ms). The number stays a function of the
// shape alone. Where one result depends on everything before it (a sort, a recurrence, one row of gigabytes) the loop uses a
// CancellationPoll.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "heddle/op.h"

namespace heddle::operators {

// The limits are 2 GFLOP and 64 MiB touched for a tile; a quarter is left for biases, small operands and shares that are not equal.
constexpr double max_tile_flops = 1.5e9;
constexpr double max_tile_bytes = 48.0 * 1024 * 1024;
constexpr int64_t max_capped_tiles = int64_t{1} << 30;  // far below the host's limit, and enough for 10^18 operations

// The minimum number of tiles for so much work.
inline int64_t min_tiles(double flops, double bytes) {
  const double tiles = std::ceil(std::fmax(flops / max_tile_flops, bytes / max_tile_bytes));
  if (!(tiles > 1)) return 1;
  return tiles < static_cast<double>(max_capped_tiles) ? static_cast<int64_t>(tiles) : max_capped_tiles;
}

// True if no output has an element, or an extent to find. With an extent of 0 the others may be of any size, so loops over them must not
// begin.
inline bool writes_nothing(const plugin::RunContext& context) {
  return std::all_of(context.outputs, context.outputs + context.output_count,
                     [](const heddle_tensor* output) { return !output || (output->element_count == 0 && !output->extent); });
}

// Asks the host every few million operations whether the run continues. A value on the stack of one call of run.
class CancellationPoll {
 public:
  explicit CancellationPoll(const plugin::RunContext& context) : context_(context) {}
  // Counts `operations` (about a nanosecond each) that come next; true when the kernel should return cancelled().
  bool stops(int64_t operations) {
    left_ -= operations + 1;  // so that a loop over nothing is counted, too
    if (left_ > 0 || stopped_) return stopped_;
    left_ = between;
    return stopped_ = plugin::is_cancelled(context_);
  }
  bool stopped() const { return stopped_; }
  plugin::Status status() const { return stopped_ ? plugin::cancelled() : plugin::Status(); }

  static constexpr int64_t between = int64_t{1} << 22;

 private:
  const plugin::RunContext& context_;
  int64_t left_ = between;
  bool stopped_ = false;
};

// memcpy and fill of possibly gigabytes; unfinished when `poll` stops.
inline void copy_cancellable(void* target, const void* source, int64_t bytes, CancellationPoll& poll) {
  for (int64_t first = 0; first < bytes; first += CancellationPoll::between) {
    const int64_t n = std::min(CancellationPoll::between, bytes - first);
    if (poll.stops(n / 8)) return;
    std::memcpy(static_cast<char*>(target) + first, static_cast<const char*>(source) + first, static_cast<size_t>(n));
  }
}
template <class T>
void fill_cancellable(T* target, int64_t count, T value, CancellationPoll& poll) {
  for (int64_t first = 0; first < count; first += CancellationPoll::between) {
    const int64_t n = std::min(CancellationPoll::between, count - first);
    if (poll.stops(n / 4)) return;
    std::fill_n(target + first, n, value);
  }
}

// std::sort and std::partial_sort (which reads all of [first, last), and sorts [first, middle)) for many elements: a heap sort, because it
// stays within bounds when it is stopped early or when `less` becomes inconsistent (a cancelled comparison has an arbitrary result).
// Elements that compare equal must be interchangeable: the sort is not stable.
template <class T, class Less>
void heap_sort_cancellable(T* first, T* middle, T* last, Less less, int64_t operations_of_less, CancellationPoll& poll) {
  int64_t depth = 1;
  while ((int64_t{1} << depth) <= middle - first) ++depth;
  if (middle == first) return;
  // std::make_heap, one element at a time.
  for (T* end = first + 1; end <= middle && !poll.stops(operations_of_less); ++end) std::push_heap(first, end, less);
  for (T* element = middle; element != last && !poll.stops(operations_of_less); ++element) {
    if (!less(*element, *first)) continue;
    poll.stops(2 * depth * operations_of_less);
    std::pop_heap(first, middle, less);
    *(middle - 1) = *element;
    std::push_heap(first, middle, less);
  }
  for (T* end = middle; end - first > 1 && !poll.stops(2 * depth * operations_of_less); --end) std::pop_heap(first, end, less);
}
// With more operations a sort has to be cancellable: then the heap sort is used, although it takes twice as long or more.
constexpr double max_sort_operations = 64e6;

}  // namespace heddle::operators
