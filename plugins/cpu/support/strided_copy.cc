// StridedCopy: plans boxes as units of three dimensions, for the loops of MovedBlock. They are memory-bound: it is important that the inner
// loop runs along contiguous bytes on both sides, or in square blocks when the contiguous dimensions of source and target differ.
#include "support/strided_copy.h"

#include <algorithm>

#include "support/cpu_api.h"

namespace heddle::cpu {
namespace {

constexpr int64_t unit_bytes = 32 * 1024;
constexpr int64_t line_bytes = 64;  // of the caches

}  // namespace

void StridedCopy::finish() {
  units_ = 0;
  if (box_.is_empty()) return;
  box_.merge();
  widen();
  const bool transposes = pick_loop();
  // The last three dimensions are a block.
  const int missing = std::max(0, block_rank - box_.rank);
  std::copy_backward(box_.dims, box_.dims + box_.rank, box_.dims + box_.rank + missing);
  std::fill_n(box_.dims, missing, Dimension{1, 0, 0});
  box_.rank += missing;
  divide(transposes);
}

// A short contiguous last dimension is one wider element.
void StridedCopy::widen() {
  if (box_.rank < 2) return;
  const Dimension last = box_.dims[box_.rank - 1];
  const int64_t bytes = last.extent * box_.width;
  if (last.source != box_.width || last.target != box_.width || (bytes != 2 && bytes != 4 && bytes != 8 && bytes != 16)) return;
  box_.width = bytes;
  --box_.rank;
}

// Returns true if rows of the source become columns.
bool StridedCopy::pick_loop() {
  const MoveTable& moves = isa_moves();
  const int width = width_index(box_.width);
  const Dimension& last = box_.dims[box_.rank - 1];
  move_ = moves.scatter[width];
  if (last.target != box_.width) return false;
  move_ = last.source == box_.width ? moves.copy[width] : last.source == 0 ? moves.fill[width] : moves.gather[width];
  if (last.source == box_.width || last.source == 0) return false;
  for (int i = 0; i + 1 < box_.rank; ++i) {
    if (box_.dims[i].source != box_.width) continue;
    std::rotate(box_.dims + i, box_.dims + i + 1, box_.dims + box_.rank - 1);  // goes next to the last
    move_ = moves.transpose[width];
    return true;
  }
  return false;
}

// Takes whole columns, then whole rows, as long as they fit a unit.
void StridedCopy::divide(bool transposes) {
  const Dimension* const block = box_.dims + box_.rank - block_rank;
  int64_t elements = std::max<int64_t>(1, unit_bytes / box_.width);
  for (int i = block_rank - 1; i >= 0; --i) {
    int64_t most = elements;
    // A square of lines of the caches: the rows of a unit fill whole ones, and the columns are so few that their lines stay.
    if (transposes && i == block_rank - 1 && block[1].extent * box_.width >= line_bytes) most = std::min<int64_t>(most, 128);
    if (transposes && i == block_rank - 2) most = std::max<int64_t>(most / (line_bytes / box_.width), 1) * (line_bytes / box_.width);
    steps_[i] = std::min(block[i].extent, std::max<int64_t>(most, 1));
    elements /= steps_[i];
  }
  units_ = 1;
  for (int i = 0; i < box_.rank; ++i) units_ *= count(i);
}

// How many steps a dimension takes.
int64_t StridedCopy::count(int dimension) const {
  const int64_t s = step(dimension);
  return (box_.dims[dimension].extent + s - 1) / s;
}

void StridedCopy::run(const void* source, void* target, int64_t first, int64_t last) const {
  if (first >= last) return;
  const int rank = box_.rank, outer = rank - block_rank;
  MovedBlock block = {static_cast<const char*>(source) + box_.source_first, static_cast<char*>(target) + box_.target_first, {}, {}, {}};
  // The position of `first`, then an odometer whose last dimension turns fastest.
  int64_t at[operators::Box::capacity];
  const auto move = [&](int i, int64_t distance) {
    at[i] += distance;
    block.source += distance * box_.dims[i].source;
    block.target += distance * box_.dims[i].target;
  };
  int64_t rest = first;
  for (int i = rank - 1; i >= 0; --i) {
    at[i] = 0;
    move(i, rest % count(i) * step(i));
    rest /= count(i);
  }
  const auto part = [&](int i) {
    const Dimension& d = box_.dims[outer + i];
    return MovedBlock::Dimension{std::min(steps_[i], d.extent - at[outer + i]), d.source, d.target};
  };
  for (int64_t unit = first; unit < last; ++unit) {
    block.plane = part(0);
    block.row = part(1);
    block.column = part(2);
    move_(block);
    for (int i = rank - 1; i >= 0; --i) {
      move(i, step(i));
      if (at[i] < box_.dims[i].extent) break;
      move(i, -at[i]);
    }
  }
}

}  // namespace heddle::cpu
