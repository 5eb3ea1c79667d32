// Comes before a kernel's text where it is compiled for the host: provides what CUDA C++ has and C++ lacks by the emulated grid (grid.h),
// which runs one thread of the block after the other.
#pragma once

typedef __SIZE_TYPE__ size_t;
extern "C" {
float expf(float), logf(float), tanhf(float), erff(float), sinf(float), cosf(float), tanf(float), asinf(float), acosf(float), atanf(float),
    sinhf(float), coshf(float), asinhf(float), acoshf(float), atanhf(float), log1pf(float), expm1f(float), fmodf(float, float),
    powf(float, float);
double exp(double), log(double), tanh(double), erf(double), sin(double), cos(double), tan(double), asin(double), acos(double), atan(double),
    sinh(double), cosh(double), asinh(double), acosh(double), atanh(double), log1p(double), expm1(double), fmod(double, double),
    pow(double, double);
}
#define HEDDLE_BUILTIN(name) __builtin_##name
static inline float sqrtf(float x) {
  return __builtin_sqrtf(x);
}
static inline double sqrt(double x) {
  return __builtin_sqrt(x);
}
static inline float fabsf(float x) {
  return __builtin_fabsf(x);
}
static inline double fabs(double x) {
  return __builtin_fabs(x);
}
static inline float floorf(float x) {
  return __builtin_floorf(x);
}
static inline double floor(double x) {
  return __builtin_floor(x);
}
static inline float ceilf(float x) {
  return __builtin_ceilf(x);
}
static inline double ceil(double x) {
  return __builtin_ceil(x);
}
static inline float rintf(float x) {
  return __builtin_rintf(x);
}
static inline double rint(double x) {
  return __builtin_rint(x);
}
static inline float copysignf(float x, float y) {
  return __builtin_copysignf(x, y);
}
static inline double copysign(double x, double y) {
  return __builtin_copysign(x, y);
}
static inline float fmaf(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}

template <class To, class From>
static inline To heddle_bits(From from) {
  To to;
  __builtin_memcpy(&to, &from, sizeof(to));
  return to;
}
static inline float __uint_as_float(unsigned int x) {
  return heddle_bits<float>(x);
}
static inline unsigned int __float_as_uint(float x) {
  return heddle_bits<unsigned int>(x);
}
static inline float __int_as_float(int x) {
  return heddle_bits<float>(x);
}
static inline int __float_as_int(float x) {
  return heddle_bits<int>(x);
}
static inline double __longlong_as_double(long long x) {
  return heddle_bits<double>(x);
}
static inline long long __double_as_longlong(double x) {
  return heddle_bits<long long>(x);
}
static inline unsigned int __umulhi(unsigned int x, unsigned int y) {
  return (unsigned int)(((unsigned long long)x * y) >> 32);
}

#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __restrict__ __restrict

struct heddle_index {
  unsigned int x, y, z;
};
// The state that the running thread gets and the functions that it may call. The same struct is in grid.cc.
struct heddle_grid {
  heddle_index thread, block, block_dim, grid_dim;
  void (*barrier)(heddle_grid*);
  // Gives `bytes` (8 at most) to the other lanes of the warp and reads those of `lane`; a lane that does not exist gives the thread's own.
  void (*shuffle)(heddle_grid*, const void* own, void* other, unsigned int bytes, int lane);
  void* (*shared)(heddle_grid*, int id, unsigned long long bytes);
};
extern "C" {
__attribute__((visibility("default"))) __thread heddle_grid* heddle_grid_now;
}
#define threadIdx (heddle_grid_now->thread)
#define blockIdx (heddle_grid_now->block)
#define blockDim (heddle_grid_now->block_dim)
#define gridDim (heddle_grid_now->grid_dim)
#define warpSize 32
#define __syncthreads() heddle_grid_now->barrier(heddle_grid_now)

static inline unsigned long long atomicCAS(unsigned long long* word, unsigned long long expected, unsigned long long value) {
  return __sync_val_compare_and_swap(word, expected, value);
}

template <class T>
static inline T heddle_shuffle(T value, int lane) {
  T other;
  heddle_grid_now->shuffle(heddle_grid_now, &value, &other, sizeof(T), lane);
  return other;
}
template <class T>
static inline T __shfl_xor_sync(unsigned int, T value, int mask, int width = 32) {
  const int lane = (int)(threadIdx.x & 31), there = lane ^ mask;
  return heddle_shuffle(value, (there / width) == (lane / width) ? there : lane);
}
template <class T>
static inline T __shfl_sync(unsigned int, T value, int source, int width = 32) {
  const int lane = (int)(threadIdx.x & 31);
  return heddle_shuffle(value, lane / width * width + (source & (width - 1)));
}
template <class T>
static inline T __shfl_up_sync(unsigned int, T value, unsigned int delta, int width = 32) {
  const int lane = (int)(threadIdx.x & 31), there = lane - (int)delta;
  return heddle_shuffle(value, there >= lane / width * width ? there : lane);
}
template <class T>
static inline T __shfl_down_sync(unsigned int, T value, unsigned int delta, int width = 32) {
  const int lane = (int)(threadIdx.x & 31), there = lane + (int)delta;
  return heddle_shuffle(value, there < (lane / width + 1) * width ? there : lane);
}

// Defines a kernel's entry, which takes the bytes of its parameters; a second symbol tells whether its threads work together.
#define HEDDLE_ENTRY(name, Type, p, together)                                                             \
  static void name##_body(const Type& p);                                                                 \
  extern "C" __attribute__((visibility("default"))) void name(const void* parameters) {                   \
    name##_body(*(const Type*)parameters);                                                                \
  }                                                                                                       \
  extern "C" __attribute__((visibility("default"))) const int name##_together = together;                 \
  extern "C" __attribute__((visibility("default"))) const unsigned long long name##_bytes = sizeof(Type); \
  static void name##_body(const Type& p)
#define HEDDLE_KERNEL(name, Type, p) HEDDLE_ENTRY(name, Type, p, 0)
#define HEDDLE_BLOCK_KERNEL(name, Type, p) HEDDLE_ENTRY(name, Type, p, 1)
#define HEDDLE_SHARED(Type, name, count) \
  Type* const name = (Type*)heddle_grid_now->shared(heddle_grid_now, __COUNTER__, sizeof(Type) * (count))
