// N neighbouring elements of `count`, from `first` on, as many of them as exist: at once if all exist. N and `first` must be such that
// packs of 16 bytes are aligned for the machine.
#ifndef HEDDLE_SOME_CUH
#define HEDDLE_SOME_CUH

template <int N, class T, class Index>
HEDDLE_INLINE void load_some(const T* x, Index count, Index first, T (&to)[N]) {
  constexpr int W = 16 / (int)sizeof(T) < N ? 16 / (int)sizeof(T) : N;
  if (first + N <= count) {
    for (int e = 0; e < N; e += W) {
      const Pack<T, W> pack = *(const Pack<T, W>*)(x + first + e);
      for (int i = 0; i < W; ++i) to[e + i] = pack.element[i];
    }
  } else {
    for (int e = 0; e < N; ++e)
      if (first + e < count) to[e] = x[first + e];
  }
}

template <int N, class T, class Index>
HEDDLE_INLINE void store_some(T* y, Index count, Index first, const T (&from)[N]) {
  constexpr int W = 16 / (int)sizeof(T) < N ? 16 / (int)sizeof(T) : N;
  if (first + N <= count) {
    for (int e = 0; e < N; e += W) {
      Pack<T, W> pack;
      for (int i = 0; i < W; ++i) pack.element[i] = from[e + i];
      *(Pack<T, W>*)(y + first + e) = pack;
    }
  } else {
    for (int e = 0; e < N; ++e)
      if (first + e < count) y[first + e] = from[e];
  }
}

#endif
