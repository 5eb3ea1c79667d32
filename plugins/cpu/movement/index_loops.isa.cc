// The loops of Range and GatherElements of one instruction set level; index_loops.h describes them.
#include "movement/index_loops.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class W, class Index>
int64_t gather(const GatheredRow& row) {
  constexpr int64_t chunk = 64;
  const W* const from = static_cast<const W*>(row.from);
  const Index* const indices = static_cast<const Index*>(row.indices);
  W* const to = static_cast<W*>(row.to);
  const int64_t bound = row.bound, stride = row.stride, step = row.step;
  alignas(64) int64_t places[chunk];
  for (int64_t first = 0; first < row.count; first += chunk) {
    const int64_t count = row.count - first < chunk ? row.count - first : chunk;
    uint64_t outside = 0;
    for (int64_t c = 0; c < count; ++c) {
      const int64_t given = indices[first + c], index = given + (given < 0 ? bound : 0);
      outside |= static_cast<uint64_t>(index) | static_cast<uint64_t>(bound - 1 - index);  // either is negative
      places[c] = index * stride + (first + c) * step;
    }
    if (static_cast<int64_t>(outside) < 0) {
      int64_t c = first;
      for (; indices[c] >= -bound && indices[c] < bound; ++c) to[c] = from[places[c - first]];
      return c;
    }
    for (int64_t c = 0; c < count; ++c) to[first + c] = from[places[c]];
  }
  return row.count;
}

template <class T, class N>
void count_up(const void* start, const void* step, int64_t first, int64_t last, void* y) {
  const T from = *static_cast<const T*>(start), by = *static_cast<const T*>(step);
  T* __restrict__ const to = static_cast<T*>(y);
  for (int64_t i = 0; i < last - first; ++i) to[i] = static_cast<T>(from + static_cast<T>(static_cast<N>(first + i)) * by);
}

constexpr IndexTable make() {
  IndexTable table = {{{gather<uint8_t, int32_t>, gather<uint8_t, int64_t>},
                       {gather<uint16_t, int32_t>, gather<uint16_t, int64_t>},
                       {gather<uint32_t, int32_t>, gather<uint32_t, int64_t>},
                       {gather<uint64_t, int32_t>, gather<uint64_t, int64_t>}},
                      {}};
  table.count_up[HEDDLE_F32] = count_up<float, int64_t>;
  table.count_up[HEDDLE_F64] = count_up<double, int64_t>;
  table.count_up[HEDDLE_I16] = count_up<uint16_t, uint64_t>;
  table.count_up[HEDDLE_I32] = count_up<uint32_t, uint64_t>;
  table.count_up[HEDDLE_I64] = count_up<uint64_t, uint64_t>;
  return table;
}

}  // namespace

constinit const IndexTable index_loops = make();

}  // namespace heddle::cpu::HEDDLE_ISA
