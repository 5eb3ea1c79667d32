// The softmax loops of one instruction set level: maximum, then exponentials and their sum, then scaling.
#include "reduce/softmax_rows.h"

#include "vector/simd_math.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

constexpr int64_t n = lanes<float>;

float largest(const float* x, int64_t count) {
  constexpr float lowest = -__builtin_inff();
  VF a[4] = {splat<VF>(lowest), splat<VF>(lowest), splat<VF>(lowest), splat<VF>(lowest)};
  int64_t i = 0;
  for (; i + 4 * n <= count; i += 4 * n)
    for (int k = 0; k < 4; ++k) a[k] = larger(a[k], load<VF>(x + i + k * n));
  for (; i + n <= count; i += n) a[0] = larger(a[0], load<VF>(x + i));
  if (i < count) a[1] = larger(a[1], load_part(x + i, count - i, splat<VF>(lowest)));
  const VF m = larger(larger(a[0], a[1]), larger(a[2], a[3]));
  return largest_lane(m);
}

// y = exp(x - shift), or only its sum when y is null.
float exponentials(const float* x, float* y, int64_t count, float shift) {
  VF sum[2] = {};
  const VF s = splat<VF>(shift);
  int64_t i = 0;
  for (; i + 2 * n <= count; i += 2 * n)
    for (int k = 0; k < 2; ++k) {
      const VF e = exp(load<VF>(x + i + k * n) - s);
      if (y) store(y + i + k * n, e);
      sum[k] += e;
    }
  for (; i + n <= count; i += n) {
    const VF e = exp(load<VF>(x + i) - s);
    if (y) store(y + i, e);
    sum[0] += e;
  }
  if (i < count) {
    const VF e = exp(load_part(x + i, count - i, splat<VF>(-__builtin_inff())) - s);
    if (y) store_part(y + i, e, count - i);
    float kept[n];
    store(kept, e);
    sum[1] += load_part(kept, count - i, VF{});
  }
  return sum_lanes(sum[0] + sum[1]);
}

void plain_row(const float* x, float* y, int64_t count) {
  const float scale = 1.0f / exponentials(x, y, count, largest(x, count));
  int64_t i = 0;
  for (; i + n <= count; i += n) store(y + i, load<VF>(y + i) * scale);
  if (i < count) store_part(y + i, load_part(y + i, count - i, VF{}) * scale, count - i);
}

void log_row(const float* x, float* y, int64_t count) {
  const float shift = largest(x, count);
  const float log_sum = __builtin_logf(exponentials(x, nullptr, count, shift));
  int64_t i = 0;
  for (; i + n <= count; i += n) store(y + i, load<VF>(x + i) - shift - log_sum);
  if (i < count) store_part(y + i, load_part(x + i, count - i, VF{}) - shift - log_sum, count - i);
}

void hard_row(const float* x, float* y, int64_t count) {
  const float m = largest(x, count);
  // A NaN among them is the largest.
  const auto is_largest = [&](auto v) { return m != m ? v != v : v == m; };
  int64_t first = 0;
  while (first + n <= count && !any(is_largest(load<VF>(x + first)))) first += n;
  while (!is_largest(x[first])) ++first;
  __builtin_memset(y, 0, static_cast<size_t>(count) * sizeof(float));
  y[first] = 1.0f;
}

// Rows of `width` vectors, the last one possibly partial, which stay in registers.
template <SoftmaxKind kind, int width>
void kept_rows(const float* x, float* y, int64_t rows, int64_t count) {
  const int64_t rest = count - (width - 1) * n;  // elements of the last vector
  for (int64_t r = 0; r < rows; ++r, x += count, y += count) {
    VF v[width];
    for (int k = 0; k + 1 < width; ++k) v[k] = load<VF>(x + k * n);
    v[width - 1] = rest == n ? load<VF>(x + (width - 1) * n) : load_part(x + (width - 1) * n, rest, splat<VF>(-__builtin_inff()));
    VF m = v[0];
    for (int k = 1; k < width; ++k) m = larger(m, v[k]);
    const VF shift = splat<VF>(largest_lane(m));
    VF sum = {};
    for (int k = 0; k < width; ++k) {
      const VF e = exp(v[k] - shift);
      sum += e;
      v[k] = kind == softmax_plain ? e : v[k] - shift;
    }
    const float total = sum_lanes(sum);
    const VF scale = splat<VF>(1.0f / total), log_sum = kind == softmax_log ? log(splat<VF>(total)) : VF{};
    for (int k = 0; k < width; ++k) {
      const VF result = kind == softmax_plain ? v[k] * scale : v[k] - log_sum;
      if (k + 1 == width && rest < n)
        store_part(y + k * n, result, rest);
      else
        store(y + k * n, result);
    }
  }
}

constexpr int max_kept = 8;  // vectors
template <SoftmaxKind kind, int width = 1>
bool keep_rows(const float* x, float* y, int64_t rows, int64_t count) {
  if constexpr (width <= max_kept) {
    if (count > width * n) return keep_rows<kind, width + 1>(x, y, rows, count);
    kept_rows<kind, width>(x, y, rows, count);
    return true;
  } else {
    return false;
  }
}
template <SoftmaxKind kind>
void each_row(const float* x, float* y, int64_t rows, int64_t count) {
  if constexpr (kind != softmax_hard)
    if (keep_rows<kind>(x, y, rows, count)) return;
  for (int64_t r = 0; r < rows; ++r, x += count, y += count) {
    if (kind == softmax_plain) plain_row(x, y, count);
    if (kind == softmax_log) log_row(x, y, count);
    if (kind == softmax_hard) hard_row(x, y, count);
  }
}

// f(offset, count, whole): vectors of columns, the last one possibly partial.
template <class F>
void for_columns(int64_t columns, F f) {
  for (int64_t c = 0; c < columns; c += n) f(c, columns - c < n ? columns - c : n);
}
VF get(const float* x, int64_t count) {
  return count == n ? load<VF>(x) : load_part(x, count, VF{});
}
void put(float* y, VF v, int64_t count) {
  count == n ? store(y, v) : store_part(y, v, count);
}

void column_maxima(const float* x, int64_t count, int64_t stride, int64_t columns, float* maxima) {
  for_columns(columns, [&](int64_t c, int64_t k) {
    VF m = get(x + c, k);
    for (int64_t i = 1; i < count; ++i) m = larger(m, get(x + i * stride + c, k));
    store(maxima + c, m);
  });
}

void plain_columns(const float* x, float* y, int64_t count, int64_t stride, int64_t columns, float* maxima) {
  column_maxima(x, count, stride, columns, maxima);
  for_columns(columns, [&](int64_t c, int64_t k) {
    const VF m = load<VF>(maxima + c);
    VF sum = {};
    for (int64_t i = 0; i < count; ++i) {
      const VF e = exp(get(x + i * stride + c, k) - m);
      put(y + i * stride + c, e, k);
      sum += e;
    }
    const VF scale = 1.0f / sum;
    for (int64_t i = 0; i < count; ++i) put(y + i * stride + c, get(y + i * stride + c, k) * scale, k);
  });
}

void log_columns(const float* x, float* y, int64_t count, int64_t stride, int64_t columns, float* maxima) {
  column_maxima(x, count, stride, columns, maxima);
  for_columns(columns, [&](int64_t c, int64_t k) {
    const VF m = load<VF>(maxima + c);
    VF sum = {};
    for (int64_t i = 0; i < count; ++i) sum += exp(get(x + i * stride + c, k) - m);
    const VF log_sum = log(sum);
    for (int64_t i = 0; i < count; ++i) put(y + i * stride + c, get(x + i * stride + c, k) - m - log_sum, k);
  });
}

void hard_columns(const float* x, float* y, int64_t count, int64_t stride, int64_t columns, float* maxima) {
  column_maxima(x, count, stride, columns, maxima);
  for (int64_t c = 0; c < columns; ++c) {
    bool found = false;
    const float m = maxima[c];
    for (int64_t i = 0; i < count; ++i) {
      const float v = x[i * stride + c];
      const bool first = !found && (v == m || (m != m && v != v));
      found = found || first;
      y[i * stride + c] = first ? 1.0f : 0.0f;
    }
  }
}

}  // namespace

constinit const SoftmaxTable softmaxes = {{each_row<softmax_plain>, each_row<softmax_log>, each_row<softmax_hard>},
                                          {plain_columns, log_columns, hard_columns}};

}  // namespace heddle::cpu::HEDDLE_ISA
