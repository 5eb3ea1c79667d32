// Division of the bytes that an operator moves into tiles. Sizes are in bytes where the name says so.
#pragma once

#include <algorithm>
#include <cstdint>

#include "shared/operator_api.h"
#include "shared/tile_cap.h"

namespace heddle::operators {

constexpr int64_t tile_bytes = 256 * 1024;  // of a memory-bound copy: about 30 µs
constexpr int64_t max_tiles = 16;           // unless one of them would exceed the marks of tile_cap.h
constexpr double bytes_per_ns = 8.0;        // read and written by one thread, a first guess

// Divides any number of work units evenly over the tiles that prepare decided on.
class Tiling {
 public:
  struct Range {
    int64_t first, last;
  };
  // Plans an operator that reads and writes `bytes` in total, at `cost` times the price of a copy.
  void plan(PrepareContext& context, int64_t bytes, double cost = 1.0) { plan(context, static_cast<double>(bytes), cost); }
  // The same for amounts that 64 bits may not count. `flops`: given where they outweigh the weighted bytes.
  void plan(PrepareContext& context, double bytes, double cost, double flops = 0) {
    const double weighted = bytes * cost;
    const double tuned = std::min(weighted / (2.0 * static_cast<double>(tile_bytes)), static_cast<double>(max_tiles));
    tiles_ = std::max({int64_t{1}, static_cast<int64_t>(tuned), min_tiles(std::max(weighted, flops), touched_bytes(context, bytes))});
    context.set_tiles(tiles_);
    context.set_cost_ns(30.0 + weighted / bytes_per_ns);
  }
  // The units of tiles [begin, end) out of `total`.
  Range range(int64_t total, int64_t begin, int64_t end) const { return {share(total, begin), share(total, end)}; }

 private:
  int64_t share(int64_t total, int64_t tile) const { return total / tiles_ * tile + total % tiles_ * tile / tiles_; }
  // Outputs are written whole. Of the inputs at most as much is read as the operator declares to move: not all of a table that is looked
  // up.
  static double touched_bytes(PrepareContext& context, double moved) {
    double read = 0, written = 0;
    for (uint32_t i = 0; i < context.input_count(); ++i)
      if (context.input(i)) read += static_cast<double>(context.input(i)->byte_size);
    for (uint32_t i = 0; i < context.output_count(); ++i)
      if (context.output(i)) written += static_cast<double>(context.output(i)->byte_size);
    return std::max(moved, written + std::min(read, std::max(moved, written)));
  }
  int64_t tiles_ = 1;
};

}  // namespace heddle::operators
