// Random numbers from Philox4x32-10 by the rules of docs/operators.md, with the host's bits, except where logarithms, exponentials, sines
// and cosines differ: the numbers of an element depend on its number, not on the thread that makes them.
//
// F is generated (generate/operators/random_launches.cc): types Index and T (an element), and the members named at the kernels below.
#ifndef HEDDLE_RANDOM_CUH
#define HEDDLE_RANDOM_CUH

// Mirrors heddle_run_state.
struct RunState {
  u64 seed, step, trip;
};

// The words of a block.
struct Words {
  u32 word[4];
};

// See heddle/op/philox.h.
struct Philox {
  u64 seed, step;
  u32 stream;

  __device__ __forceinline__ Words block(u64 number) const {
    u32 a = (u32)number, b = ((u32)(number >> 32) & 0xffffu) | (u32)(step >> 32) << 16, c = (u32)step, d = stream;
    u32 low = (u32)seed, high = (u32)(seed >> 32);
    for (int round = 0; round < 10; ++round) {
      const u64 left = (u64)0xD2511F53u * a, right = (u64)0xCD9E8D57u * c;
      a = (u32)(right >> 32) ^ b ^ low;
      b = (u32)right;
      c = (u32)(left >> 32) ^ d ^ high;
      d = (u32)left;
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
    return {{a, b, c, d}};
  }
};

// The state of the run lies on the device: it is read when the kernel runs.
template <class P>
HEDDLE_INLINE Philox philox_of(const P& p) {
  u64 seed = p.own_seed != 0 ? (u64)p.seed : p.state->seed;
  const u64 trip = p.state->trip;
  if (trip != 0) {
    u64 z = seed + 0x9e3779b97f4a7c15ull * trip;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    seed = z ^ (z >> 31);
  }
  return {seed, p.state->step, (u32)p.stream};
}

// Elements of a block, of which element 0 of a tensor is number p.random_first of the whole: `shift` elements before it are of its block.
template <int N, class T, class Index>
HEDDLE_INLINE void load_shifted(const T* x, Index count, Index first, Index shift, T (&values)[N]) {
  if (shift == 0) return load_some<N>(x, count, first, values);
  for (int i = 0; i < N; ++i)
    if (first + i >= shift && first + i - shift < count) values[i] = x[first + i - shift];
}
template <int N, class T, class Index>
HEDDLE_INLINE void store_shifted(T* y, Index count, Index first, Index shift, const T (&values)[N]) {
  if (shift == 0) return store_some<N>(y, count, first, values);
  for (int i = 0; i < N; ++i)
    if (first + i >= shift && first + i - shift < count) y[first + i - shift] = values[i];
}

HEDDLE_INLINE double unit_24(u32 word) { return (double)(word >> 8) * 0x1p-24; }
HEDDLE_INLINE double unit_32(u32 word) { return (double)word * 0x1p-32; }
HEDDLE_INLINE double unit_53(u32 high, u32 low) { return (double)(((u64)high << 21) ^ (low >> 11)) * 0x1p-53; }

// Returns the next smaller number; the argument must not be the smallest.
template <class Bits, class T>
HEDDLE_INLINE T before(T value) {
  union {
    T value;
    Bits bits;
  } both = {value};
  const Bits sign = (Bits)((Bits)1 << (8 * sizeof(T) - 1));
  both.bits = (Bits)((both.bits & sign) != 0 ? both.bits + 1 : both.bits == 0 ? sign | 1 : both.bits - 1);
  return both.value;
}

// RandomNormal and RandomUniform: p.offset + p.factor * x. F has R, an intermediate type that rounds to T's numbers, and Bits.
template <class F, class P>
HEDDLE_INLINE void draw_numbers(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  typedef typename F::R R;
  constexpr int N = sizeof(T) == 8 ? 2 : 4;
  const Philox philox = philox_of(p);
  const Index count = (Index)p.count, shift = (Index)((u64)p.random_first % N), step = (Index)gridDim.x * blockDim.x;
  const Index blocks = (count + shift) / N + ((count + shift) % N != 0);
  for (Index block = (Index)blockIdx.x * blockDim.x + threadIdx.x; block < blocks; block += step) {
    const Words words = philox.block((u64)p.random_first / N + block);
    double x[N];
    if constexpr (N == 2)
      for (int i = 0; i < N; ++i) x[i] = unit_53(words.word[2 * i], words.word[2 * i + 1]);
    else
      for (int i = 0; i < N; ++i) x[i] = unit_24(words.word[i]);
    if constexpr (F::NORMAL)
      for (int i = 0; i < N; i += 2) {
        const double radius = sqrt(-2.0 * log1p(-x[i])), angle = 6.283185307179586476925286766559 * x[i + 1];
        x[i] = radius * cos(angle);
        x[i + 1] = radius * sin(angle);
      }
    T values[N];
    for (int i = 0; i < N; ++i) {
      const T value = Stored<T>::of((R)(p.offset + p.factor * x[i]));
      // Uniform numbers are below their bound; those next to it may have been rounded up to it.
      values[i] = (double)To<R>::from(value) >= p.bound ? before<typename F::Bits>(value) : value;
    }
    store_shifted<N>(p.y, count, block * N, shift, values);
  }
}

// Bernoulli: p.one are the bits of a one.
template <class F, class P>
HEDDLE_INLINE void draw_choices(const P& p) {
  typedef typename F::Index Index;
  const Philox philox = philox_of(p);
  const Index count = (Index)p.count, shift = (Index)((u64)p.random_first % 4), step = (Index)gridDim.x * blockDim.x;
  const Index blocks = (count + shift) / 4 + ((count + shift) % 4 != 0);
  for (Index block = (Index)blockIdx.x * blockDim.x + threadIdx.x; block < blocks; block += step) {
    const Words words = philox.block((u64)p.random_first / 4 + block);
    typename F::X x[4] = {};
    typename F::T values[4];
    load_shifted<4>(p.x, count, block * 4, shift, x);
    for (int i = 0; i < 4; ++i) values[i] = (typename F::T)(unit_32(words.word[i]) < To<double>::from(x[i]) ? p.one : 0);
    store_shifted<4>(p.y, count, block * 4, shift, values);
  }
}

// Dropout; y may be x. F has C (the type of the computation), MASK, and `double ratio(p)`, `bool trains(p)`. An invalid ratio, which the
// host refuses, gives NaN: a kernel cannot report errors.
template <class F, class P>
HEDDLE_INLINE void drop_out(const P& p) {
  typedef typename F::Index Index;
  typedef typename F::T T;
  typedef typename F::C C;
  const double ratio = F::ratio(p);
  const bool valid = ratio >= 0 && ratio < 1, drops = valid && ratio > 0 && F::trains(p);
  if (valid && !drops && !F::MASK && p.y == p.x) return;
  const u64 threshold = drops ? (u64)(ratio * 0x1p32) : 0;
  const C factor = (C)(1.0 / (1.0 - ratio));
  const T none = Stored<T>::of((C)__int_as_float(0x7fc00000));
  const Philox philox = philox_of(p);
  const Index count = (Index)p.count, shift = (Index)((u64)p.random_first % 4), step = (Index)gridDim.x * blockDim.x;
  const Index blocks = (count + shift) / 4 + ((count + shift) % 4 != 0);
  for (Index block = (Index)blockIdx.x * blockDim.x + threadIdx.x; block < blocks; block += step) {
    T values[4] = {};
    boolean mask[4];
    load_shifted<4>(p.x, count, block * 4, shift, values);
    Words words = {};
    if (drops) words = philox.block((u64)p.random_first / 4 + block);
    for (int i = 0; i < 4; ++i) {
      const bool kept = valid && words.word[i] >= threshold;
      mask[i].byte = kept ? 1 : 0;
      if (drops) values[i] = Stored<T>::of(kept ? To<C>::from(values[i]) * factor : (C)0);
      if (!valid) values[i] = none;
    }
    store_shifted<4>(p.y, count, block * 4, shift, values);
    if constexpr (F::MASK) store_shifted<4>(p.mask, count, block * 4, shift, mask);
  }
}

struct Larger {
  HEDDLE_INLINE_MEMBER double combine(double a, double b) { return a < b ? b : a; }
};

// Multinomial: a block for each row, whose cumulative sums by class lie in the block's own scratch. The order of additions is that of
// sum_before(), whatever the grid.
template <class F, class P>
HEDDLE_INLINE void draw_classes(const P& p) {
  typedef typename F::Index Index;
  constexpr int THREADS = F::THREADS, ITEMS = 4;
  HEDDLE_SHARED(double, shared, THREADS / 32);
  const Philox philox = philox_of(p);
  const Index rows = (Index)p.rows, classes = (Index)p.classes, samples = (Index)p.samples;
  double* const sums = p.sums + (u64)blockIdx.x * (u64)p.classes;
  for (Index row = blockIdx.x; row < rows; row += gridDim.x) {
    double largest = __longlong_as_double((i64)0xfff0000000000000ull);
    for (Index c = threadIdx.x; c < classes; c += THREADS) largest = Larger::combine(largest, To<double>::from(p.x[row * classes + c]));
    largest = across<Larger, THREADS>(largest, shared);
    double carry = 0;
    for (Index first = 0; first < classes; first += THREADS * ITEMS) {
      const Index c = first + threadIdx.x * ITEMS;
      double weights[ITEMS], own = 0, all = 0;
      for (int i = 0; i < ITEMS; ++i) {
        weights[i] = c + i < classes ? exp(To<double>::from(p.x[row * classes + c + i]) - largest) : 0.0;
        own += weights[i];
      }
      double sum = carry + sum_before<THREADS>(own, shared, &all);
      carry += all;
      for (int i = 0; i < ITEMS; ++i) {
        sum += weights[i];
        if (c + i < classes) sums[c + i] = sum;
      }
    }
    __syncthreads();
    const double whole = sums[classes - 1];
    for (Index s = threadIdx.x; s < samples; s += THREADS) {
      const Index element = row * samples + s;
      const u64 number = (u64)p.random_first + element;
      const Words words = philox.block(number / 2);
      const int half = (int)(number % 2);
      const double u = unit_53(words.word[2 * half], words.word[2 * half + 1]) * whole;
      // Finds the first class whose sum is larger, the last if there is none.
      Index low = 0, high = classes - 1;
      while (low < high) {
        const Index middle = low + (high - low) / 2;
        if (u < sums[middle])
          high = middle;
        else
          low = middle + 1;
      }
      p.y[element] = (typename F::T)low;
    }
    // The next row's sums use the same memory: across() waits for all threads that read these.
  }
}

#endif
