// The loops of extremum_rows.h of one instruction set level.
#include "reduce/extremum_rows.h"

#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

constexpr int64_t n = lanes<float>;

// A mask, or a truth: where x takes the place of `best`, which came before it.
template <bool largest, bool last, class V>
auto beats(V x, V best) {
  if constexpr (last)
    return (largest ? x >= best : x <= best) | (x != x);
  else
    return (largest ? x > best : x < best) | ((x != x) & (best == best));
}

struct Best {
  VF value;
  VI place;
};
// Goes through `count` vectors that are `stride` elements apart.
template <bool largest, bool last, class Load>
Best best_of(int64_t count, Load load_at) {
  Best best = {load_at(0), VI{}};
  for (int64_t i = 1; i < count; ++i) {
    const VF x = load_at(i);
    const VI better = beats<largest, last>(x, best.value);
    best.value = better ? x : best.value;
    best.place = better ? splat<VI>(static_cast<int32_t>(i)) : best.place;
  }
  return best;
}

template <bool largest, bool last>
int64_t row(const float* x, int64_t count) {
  const int64_t whole = count / n;
  float value = x[0];
  int64_t place = 0;
  const auto offer = [&](float other, int64_t at) {
    // Lanes come in any order: of equal elements, or NaN, the place decides.
    const bool equal = other == value || (other != other && value != value);
    if (equal ? (last ? at > place : at < place) : static_cast<bool>(beats<largest, last>(other, value))) value = other, place = at;
  };
  if (whole > 0) {
    const Best best = best_of<largest, last>(whole, [&](int64_t i) { return load<VF>(x + i * n); });
    for (int k = 0; k < n; ++k) offer(best.value[k], best.place[k] * n + k);
  }
  for (int64_t i = whole * n; i < count; ++i) offer(x[i], i);
  return place;
}

template <bool largest, bool last>
void columns(const float* x, int64_t count, int64_t stride, int64_t columns, int64_t* places) {
  for (int64_t c = 0; c < columns; c += n) {
    const int64_t part = columns - c < n ? columns - c : n;
    const Best best = best_of<largest, last>(
        count, [&](int64_t i) { return part == n ? load<VF>(x + i * stride + c) : load_part(x + i * stride + c, part, VF{}); });
    for (int k = 0; k < part; ++k) places[c + k] = best.place[k];
  }
}

template <bool largest, bool last>
constexpr ExtremumFunctions functions = {row<largest, last>, columns<largest, last>};

}  // namespace

constinit const ExtremumTable extrema = {{functions<true, false>, functions<true, true>},
                                         {functions<false, false>, functions<false, true>}};

}  // namespace heddle::cpu::HEDDLE_ISA
