// The loops of optimizers of one instruction set level.
#include "training/optimizer_loops.h"

#include "vector/prefetch.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {
namespace {

template <class T>
Vector<T> get(const T* x, int64_t i, int64_t n) {
  if (n == lanes<T>) return load<Vector<T>>(x + i);
  Vector<T> v = {};
  __builtin_memcpy(&v, x + i, static_cast<size_t>(n) * sizeof(T));
  return v;
}
template <class T>
void put(T* y, int64_t i, int64_t n, Vector<T> v) {
  if (n == lanes<T>) return store(y + i, v);
  __builtin_memcpy(y + i, &v, static_cast<size_t>(n) * sizeof(T));
}
// Calls f(first element, elements) for each vector, the last of which may be partial.
template <class T, class F>
inline __attribute__((always_inline)) void each(int64_t count, F f) {
  int64_t i = 0;
  for (; i + lanes<T> <= count; i += lanes<T>) f(i, int64_t{lanes<T>});
  if (i < count) f(i, count - i);
}

// Without a decay the weight is not read: 0 times infinity would be NaN.
template <class T>
Vector<T> decayed(Vector<T> gradient, Vector<T> w, T decay) {
  return decay != 0 ? fma(splat<Vector<T>>(decay), w, gradient) : gradient;
}

template <UpdateRule rule, class T>
inline __attribute__((always_inline)) void update_range(const T* w, const T* const* states, const T* gradient, T* next_w,
                                                        T* const* next_states, int64_t count, const UpdateNumbers<T>& k) {
  using V = Vector<T>;
  const UpdateNumbers<T> numbers = k;
  const V rate = splat<V>(numbers.rate), epsilon = splat<V>(numbers.epsilon), momentum = splat<V>(numbers.momentum);
  const V keep = splat<V>(numbers.keep), add = splat<V>(numbers.add);
  each<T>(count, [&](int64_t i, int64_t n) {
    V x = get(w, i, n);
    const V g = decayed(get(gradient, i, n), x, numbers.decay);
    V step = g;
    if constexpr (rule == update_momentum) {
      const V v = fma(momentum, get(states[0], i, n), g);
      put(next_states[0], i, n, v);
      step = numbers.nesterov ? fma(momentum, v, g) : v;
    } else if constexpr (rule == update_adagrad || rule == update_rms_prop) {
      const V before = get(states[0], i, n), s = rule == update_adagrad ? fma(g, g, before) : fma(add * g, g, keep * before);
      put(next_states[0], i, n, s);
      step = g / (sqrt(s) + epsilon);
    } else if constexpr (rule == update_adam) {
      const V before = get(states[0], i, n), m = fma(splat<V>(numbers.towards), g - before, before);
      const V s = fma(add * g, g, keep * get(states[1], i, n));
      put(next_states[0], i, n, m);
      put(next_states[1], i, n, s);
      step = m / (sqrt(s) / splat<V>(numbers.root) + epsilon);
      x *= splat<V>(numbers.shrink);
    }
    put(next_w, i, n, x - rate * step);
  });
}

template <UpdateRule rule, class T>
void update(const T* w, const T* const* states, const T* gradient, T* next_w, T* const* next_states, int64_t count,
            const UpdateNumbers<T>& k) {
  update_range<rule, T>(w, states, gradient, next_w, next_states, count, k);
}

template <UpdateRule rule, class T>
void update_rows(const UpdatedRows<T>& table, const UpdateNumbers<T>& numbers) {
  const RowStretch<T>&now = table.now, &next = table.next;
  const int64_t length = table.length, bytes = length * static_cast<int64_t>(sizeof(T));
  const auto of_row = [&](T* variable, int64_t row) { return variable ? variable + row * length : nullptr; };
  for (int64_t r = 0; r < now.count; ++r) {
    if (r < next.count) {
      prefetch_row(next.gradients[r], bytes);
      prefetch_row(of_row(table.w, next.rows[r]), bytes);
      for (T* state : table.states)
        if (state) prefetch_row(of_row(state, next.rows[r]), bytes);
    }
    T* const w = of_row(table.w, now.rows[r]);
    T* const states[max_update_states] = {of_row(table.states[0], now.rows[r]), of_row(table.states[1], now.rows[r])};
    update_range<rule, T>(w, states, now.gradients[r], w, states, length, numbers);
  }
}

template <class T>
double squares(const T* w, const T* gradient, int64_t count, T decay) {
  using V = Vector<T>;
  double total = 0;
  V sum = {};
  int64_t in_sum = 0;
  const auto end = [&] {
    for (int k = 0; k < lanes<T>; ++k) total += static_cast<double>(sum[k]);
    sum = V{};
    in_sum = 0;
  };
  each<T>(count, [&](int64_t i, int64_t n) {
    const V g = decayed(get(gradient, i, n), get(w, i, n), decay);
    sum = fma(g, g, sum);
    if (++in_sum == 256) end();  // so many are summed in the dtype itself
  });
  end();
  return total;
}

template <class T>
void add(const T* a, const T* b, T* sum, int64_t count) {
  each<T>(count, [&](int64_t i, int64_t n) { put(sum, i, n, get(a, i, n) + get(b, i, n)); });
}

template <class T>
void add_scaled(const T* a, T factor, const T* b, T* sum, int64_t count) {
  each<T>(count, [&](int64_t i, int64_t n) {
    const Vector<T> scaled = factor * get(b, i, n);
    put(sum, i, n, a ? get(a, i, n) + scaled : scaled);
  });
}

}  // namespace

constinit const OptimizerTable optimizers = {
    {update<update_plain, float>, update<update_momentum, float>, update<update_adagrad, float>, update<update_rms_prop, float>,
     update<update_adam, float>},
    {update<update_plain, double>, update<update_momentum, double>, update<update_adagrad, double>, update<update_rms_prop, double>,
     update<update_adam, double>},
    {update_rows<update_plain, float>, update_rows<update_momentum, float>, update_rows<update_adagrad, float>,
     update_rows<update_rms_prop, float>, update_rows<update_adam, float>},
    {update_rows<update_plain, double>, update_rows<update_momentum, double>, update_rows<update_adagrad, double>,
     update_rows<update_rms_prop, double>, update_rows<update_adam, double>},
    squares<float>,
    squares<double>,
    add<float>,
    add<double>,
    add_scaled<float>,
    add_scaled<double>};

}  // namespace heddle::cpu::HEDDLE_ISA
