// The running sums of one instruction set level; running_sums.h describes them.
#include "reduce/running_sums.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

// A step of `count` lines. y may be x: each loop has one array of the caller's, so that the compiler makes vectors nevertheless.
template <class T, bool exclusive, int count>
void add_step(const T* x, T* y, int64_t distance, T* sums) {
  alignas(64) T values[count];
  for (int c = 0; c < count; ++c) values[c] = x[c * distance];
  if (exclusive)
    for (int c = 0; c < count; ++c) y[c * distance] = sums[c];
  for (int c = 0; c < count; ++c) sums[c] = static_cast<T>(sums[c] + values[c]);
  if (!exclusive)
    for (int c = 0; c < count; ++c) y[c * distance] = sums[c];
}

template <class T, bool exclusive>
class Lines {
 public:
  Lines(const RunningSums& lines, T* sums) : lines_(lines), x_(static_cast<const T*>(lines.x)), y_(static_cast<T*>(lines.y)), all_(sums) {}
  void add_up() {
    const bool are_neighbours = lines_.distance == 1;
    if (are_neighbours && lines_.lines >= 128) whole_rows<64>();
    while (are_neighbours && lines_.lines - line_ >= 64) several<64, true>();
    while (are_neighbours && lines_.lines - line_ >= 16) several<16, true>();
    while (lines_.lines - line_ >= 8) are_neighbours ? several<8, true>() : several<8, false>();
    while (are_neighbours && lines_.lines - line_ >= 4) several<4, true>();
    while (lines_.lines - line_ >= 1) several<1, false>();
  }

 private:
  // Walks through memory in its order, all lines at once.
  template <int count>
  void whole_rows() {
    const int64_t whole = lines_.lines / count * count;
    const T* x = x_;
    T* y = y_;
    for (int64_t i = 0; i < lines_.length && whole > 0; ++i, x += lines_.step, y += lines_.step)
      for (int64_t c = 0; c < whole; c += count) add_step<T, exclusive, count>(x + c, y + c, 1, all_ + c);
    line_ = whole;
  }
  // Independent sums hide the time that each addition takes.
  template <int count, bool are_neighbours>
  void several() {
    const int64_t distance = are_neighbours ? 1 : lines_.distance;
    alignas(64) T sums[count];
    for (int c = 0; c < count; ++c) sums[c] = all_[line_ + c];
    const T* x = x_ + line_ * distance;
    T* y = y_ + line_ * distance;
    for (int64_t i = 0; i < lines_.length; ++i, x += lines_.step, y += lines_.step) add_step<T, exclusive, count>(x, y, distance, sums);
    for (int c = 0; c < count; ++c) all_[line_ + c] = sums[c];
    line_ += count;
  }
  const RunningSums& lines_;
  const T* x_;
  T* y_;
  T* all_;
  int64_t line_ = 0;
};

template <class T>
void add_up(const RunningSums& lines, void* sums) {
  if (lines.exclusive)
    Lines<T, true>(lines, static_cast<T*>(sums)).add_up();
  else
    Lines<T, false>(lines, static_cast<T*>(sums)).add_up();
}

constexpr RunningSumTable make() {
  RunningSumTable table = {};
  table.add_up[HEDDLE_F32] = add_up<float>;
  table.add_up[HEDDLE_F64] = add_up<double>;
  table.add_up[HEDDLE_I8] = table.add_up[HEDDLE_U8] = add_up<uint8_t>;
  table.add_up[HEDDLE_I16] = table.add_up[HEDDLE_U16] = add_up<uint16_t>;
  table.add_up[HEDDLE_I32] = table.add_up[HEDDLE_U32] = add_up<uint32_t>;
  table.add_up[HEDDLE_I64] = table.add_up[HEDDLE_U64] = add_up<uint64_t>;
  return table;
}

}  // namespace

constinit const RunningSumTable running_sums = make();

}  // namespace heddle::cpu::HEDDLE_ISA
