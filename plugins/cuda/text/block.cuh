// Combines values of threads that work together, in an order that is always the same.
//
// A fold O has `A combine(A a, A b)`, where a's elements come before b's, and A is a type that lane_xor() exchanges.
#ifndef HEDDLE_BLOCK_CUH
#define HEDDLE_BLOCK_CUH

// Declares a kernel of blocks of `threads`, for which there are enough registers.
#ifdef __CUDA_ARCH__
#define HEDDLE_BOUNDED_KERNEL(name, Type, p, threads) extern "C" __global__ void __launch_bounds__(threads) name(const Type p)
#else
#define HEDDLE_BOUNDED_KERNEL(name, Type, p, threads) HEDDLE_BLOCK_KERNEL(name, Type, p)
#endif

// Returns the value of the lane whose number differs in the bits of `mask`.
#define HEDDLE_LANE_XOR(T)                        \
  HEDDLE_INLINE T lane_xor(T x, int mask) {       \
    return __shfl_xor_sync(0xffffffffu, x, mask); \
  }
HEDDLE_LANE_XOR(float)
HEDDLE_LANE_XOR(double)
HEDDLE_LANE_XOR(i32)
HEDDLE_LANE_XOR(i64)
HEDDLE_LANE_XOR(u64)

// Folds the values of LANES neighbouring lanes of a warp, in the order of the lanes; all of them get the same bits.
template <class O, int LANES, class A>
HEDDLE_INLINE A across_lanes(A a) {
  for (int mask = 1; mask < LANES; mask *= 2) {
    const A other = lane_xor(a, mask);
    a = (threadIdx.x & mask) != 0 ? O::combine(other, a) : O::combine(a, other);
  }
  return a;
}

// Does the same for LANES threads, a power of two, which must be a whole block if they are more than a warp. `shared` holds a value of each
// warp.
template <class O, int LANES, class A>
HEDDLE_INLINE A across(A a, A* shared) {
  a = across_lanes<O, (LANES < 32 ? LANES : 32)>(a);
  if constexpr (LANES > 32) {
    __syncthreads();  // other threads may still read the previous content
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = a;
    __syncthreads();
    a = across_lanes<O, LANES / 32>(shared[threadIdx.x % (LANES / 32)]);
  }
  return a;
}

// Returns the sum of the values of the threads before this one, 0 for the first; `all` is the sum of the whole block. `shared` holds a
// value of each warp.
template <int THREADS, class A>
HEDDLE_INLINE A sum_before(A own, A* shared, A* all) {
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  A sum = own;
  for (int delta = 1; delta < 32; delta *= 2) {
    const A other = __shfl_up_sync(0xffffffffu, sum, delta);
    if (lane >= delta) sum = op_add(other, sum);
  }
  __syncthreads();  // other threads may still read the previous content
  if (lane == 31) shared[warp] = sum;
  __syncthreads();
  A before = (A)0, total = (A)0;
  for (int w = 0; w < THREADS / 32; ++w) {
    if (w == warp) before = total;
    total = op_add(total, shared[w]);
  }
  *all = total;
  const A last = __shfl_up_sync(0xffffffffu, sum, 1);
  return lane == 0 ? before : op_add(before, last);
}

// Returns the position of element `index` of groups of dimensions, outermost first.
template <int N, class Index>
HEDDLE_INLINE Index offset_of(Index index, const i64* extents, const i64* strides) {
  Index at = 0;
#pragma unroll
  for (int i = N - 1; i > 0; --i) {
    const Index extent = (Index)extents[i];
    at += index % extent * (Index)strides[i];
    index /= extent;
  }
  return at + index * (Index)strides[0];
}

#endif
