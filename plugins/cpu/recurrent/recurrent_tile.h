// The tiles of RNN, GRU, LSTM and their gradients: ranges of the batch entries of a direction.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "recurrent/recurrent_cells.h"
#include "shared/axes.h"
#include "shared/recurrent/recurrent_shape.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// Tiles of batch entries, those of the second direction after those of the first. Entries of one tile share the reads of R in each step, so
// a tile has several where there are enough for two tiles. Directions share nothing: each has a tile of its own at least.
class RecurrentTiling {
 public:
  // `products`: multiplications of the whole layer.
  void plan(PrepareContext& context, const operators::RecurrentShape& shape, double products) {
    constexpr int64_t few = 4, many = 8, max_tiles = 16;
    constexpr double products_worth_a_tile = 1 << 17, products_per_ns = 24;
    const int64_t units = shape.directions * shape.batches, entries = std::clamp(units / 2, few, many);
    const double worth = std::min(products / products_worth_a_tile, static_cast<double>(max_tiles));
    const int64_t tuned = std::min(std::max(units / entries, std::min<int64_t>(shape.directions, units)), static_cast<int64_t>(worth));
    tiles_ = std::max({int64_t{1}, tuned, std::min(units, operators::min_tiles(2 * products, 0))});
    context.set_tiles(tiles_);
    context.set_cost_ns(100 + products / products_per_ns);
  }
  // Calls f(direction, first, last) for the entries of tiles [begin, end), a direction at a time, until it fails.
  template <class F>
  Status for_each(const operators::RecurrentShape& shape, int64_t begin, int64_t end, F f) const {
    const int64_t units = shape.directions * shape.batches;
    const int64_t last = share(units, end);
    for (int64_t unit = share(units, begin); unit < last;) {
      const int64_t d = unit / shape.batches, behind = std::min(last, (d + 1) * shape.batches);
      HEDDLE_PLUGIN_CHECK(f(d, unit - d * shape.batches, behind - d * shape.batches));
      unit = behind;
    }
    return {};
  }

 private:
  int64_t share(int64_t units, int64_t tile) const { return units / tiles_ * tile + units % tiles_ * tile / tiles_; }
  int64_t tiles_ = 1;
};

// Reads how many steps entries [first, first + count) take. `given`: sequence_lens, or null.
inline Status read_lengths(const int32_t* given, const operators::RecurrentShape& shape, int64_t first, int64_t count, int64_t* lengths) {
  for (int64_t i = 0; i < count; ++i) {
    lengths[i] = given ? given[first + i] : shape.times;
    if (lengths[i] < 0 || lengths[i] > shape.times)
      return operators::outside_range("sequence_lens[" + std::to_string(first + i) + "]", lengths[i], 0, shape.times);
  }
  return {};
}

// Copies `n` elements of `states` from `at` on, or zeros if `states` is null, and fills with zeros up to `width`.
template <class T>
void copy_state(const T* states, int64_t at, int64_t n, T* row, int64_t width) {
  if (states) std::copy_n(states + at, n, row);
  std::fill(row + (states ? n : 0), row + width, T(0));
}

}  // namespace heddle::cpu
