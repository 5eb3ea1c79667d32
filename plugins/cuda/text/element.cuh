// The base of every kernel of this plugin: numbers of all dtypes, and the operations of expressions (heddle/expression.h) on them, with the
// results of the host's kernels. CUDA C++ for NVRTC, and, by tests/cuda/grid, C++ for the host.
//
// f16 and bf16 are stored as such and computed in float; narrow integers are computed in int and wrapped after each operation that may
// leave their range. Compiled with --fmad=false: a product and a sum round separately, as on the host.

typedef signed char i8;
typedef unsigned char u8;
typedef short i16;
typedef unsigned short u16;
typedef int i32;
typedef unsigned int u32;
typedef long long i64;
typedef unsigned long long u64;
struct f16 {
  u16 bits;
};
struct bf16 {
  u16 bits;
};
struct boolean {
  u8 byte;  // 0 or 1
};

#define HEDDLE_INLINE static __device__ __forceinline__
// Declares a kernel of one struct of parameters. Threads of a kernel not declared with BLOCK do not cooperate.
#ifdef __CUDA_ARCH__
#define HEDDLE_KERNEL(name, Type, p) extern "C" __global__ void name(const Type p)
#define HEDDLE_BLOCK_KERNEL(name, Type, p) extern "C" __global__ void name(const Type p)
// Declares memory of a block's threads, which is undefined until they write it.
#define HEDDLE_SHARED(Type, name, count) __shared__ Type name[count]
#endif

// ---------------------------------------------------------------- conversions

HEDDLE_INLINE float float_of(u32 bits) { return __uint_as_float(bits); }
HEDDLE_INLINE u32 bits_of(float x) { return __float_as_uint(x); }
HEDDLE_INLINE float widened(f16 x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
#else
  const u32 magnitude = x.bits & 0x7fffu, sign = (u32)(x.bits & 0x8000u) << 16;
  const u32 scaled = bits_of(float_of(magnitude << 13) * 0x1p112f);
  return float_of((magnitude >= 0x7c00u ? (magnitude << 13) + (112u << 23) * 2 : scaled) | sign);
#endif
}
HEDDLE_INLINE f16 narrowed_f16(float x) {
  f16 y;
#ifdef __CUDA_ARCH__
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  const u32 bits = bits_of(x), sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u)
    y.bits = (u16)(0x7fffu);
  else if (magnitude >= 0x47800000u)
    y.bits = (u16)(sign | 0x7c00u);
  else if (magnitude < 0x38800000u)
    y.bits = (u16)(sign | (bits_of(float_of(magnitude) + 0.5f) - 0x3f000000u));
  else
    y.bits = (u16)(sign | ((magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13));
#endif
  return y;
}
HEDDLE_INLINE float widened(bf16 x) { return float_of((u32)x.bits << 16); }
HEDDLE_INLINE bf16 narrowed_bf16(float x) {
  const u32 bits = bits_of(x);
  bf16 y;
  y.bits = (bits & 0x7fffffffu) > 0x7f800000u ? (u16)((bits >> 16) | 0x40u) : (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
  return y;
}
// Rounds toward zero, and sets the last bit if something was lost: rounding the result again to fewer bits rounds once.
HEDDLE_INLINE float odd_float(double x) {
  const float nearest = (float)x;
  const double back = nearest;
  if (back == x || x != x) return nearest;
  const bool away = (back < 0 ? -back : back) > (x < 0 ? -x : x);
  return float_of((bits_of(nearest) - (away ? 1u : 0u)) | 1u);
}

// Converts to the type of the computation from one of the types on the right, which are stored in memory.
template <class C>
struct To;
#define HEDDLE_TO(C)                                              \
  template <>                                                     \
  struct To<C> {                                                  \
    HEDDLE_INLINE_MEMBER C from(f16 x) { return (C)widened(x); }  \
    HEDDLE_INLINE_MEMBER C from(bf16 x) { return (C)widened(x); } \
    HEDDLE_INLINE_MEMBER C from(boolean x) { return (C)x.byte; }  \
    template <class T>                                            \
    HEDDLE_INLINE_MEMBER C from(T x) {                            \
      return (C)x;                                                \
    }                                                             \
  };
#define HEDDLE_INLINE_MEMBER static __device__ __forceinline__
HEDDLE_TO(float)
HEDDLE_TO(double)
HEDDLE_TO(i32)
HEDDLE_TO(i64)
HEDDLE_TO(u64)

// Converts to the type stored in memory.
template <class T>
struct Stored {
  template <class C>
  HEDDLE_INLINE_MEMBER T of(C x) {
    return (T)x;
  }
};
HEDDLE_INLINE float single(float x) { return x; }
HEDDLE_INLINE float single(double x) { return odd_float(x); }
HEDDLE_INLINE float single(i32 x) { return odd_float((double)x); }
// Converts 64 bits, of which a double does not hold all: lost bits set the last one that stays.
HEDDLE_INLINE double odd_double(u64 x) { return x >> 53 == 0 ? (double)x : (double)(x >> 12 | ((x & 0xfffu) != 0 ? 1u : 0u)) * 4096.0; }
HEDDLE_INLINE float single(u64 x) { return odd_float(odd_double(x)); }
HEDDLE_INLINE float single(i64 x) { return x < 0 ? -single(0 - (u64)x) : single((u64)x); }
template <>
struct Stored<f16> {
  template <class C>
  HEDDLE_INLINE_MEMBER f16 of(C x) {
    return narrowed_f16(single(x));
  }
};
template <>
struct Stored<bf16> {
  template <class C>
  HEDDLE_INLINE_MEMBER bf16 of(C x) {
    return narrowed_bf16(single(x));
  }
};
template <>
struct Stored<boolean> {
  template <class C>
  HEDDLE_INLINE_MEMBER boolean of(C x) {
    boolean b;
    b.byte = x != (C)0 ? 1 : 0;
    return b;
  }
};

// Converts any number to the type stored in memory: floats become integers by rounding toward zero, saturated to the type's range, and NaN
// becomes 0.
template <class T>
struct Converted : Stored<T> {};
#define HEDDLE_CONVERTED(T, low, end, least, most)                                                       \
  template <>                                                                                           \
  struct Converted<T> {                                                                                 \
    template <class C>                                                                                  \
    HEDDLE_INLINE_MEMBER T of(C x) {                                                                    \
      return (T)x;                                                                                      \
    }                                                                                                   \
    HEDDLE_INLINE_MEMBER T of(float x) {                                                                \
      return x != x ? (T)0 : x <= (float)(low) ? (T)(least) : x >= (float)(end) ? (T)(most) : (T)x;     \
    }                                                                                                   \
    HEDDLE_INLINE_MEMBER T of(double x) {                                                               \
      return x != x ? (T)0 : x <= (double)(low) ? (T)(least) : x >= (double)(end) ? (T)(most) : (T)x;   \
    }                                                                                                   \
  };
HEDDLE_CONVERTED(i8, -0x1p7, 0x1p7, -0x80, 0x7f)
HEDDLE_CONVERTED(i16, -0x1p15, 0x1p15, -0x8000, 0x7fff)
HEDDLE_CONVERTED(i32, -0x1p31, 0x1p31, -0x7fffffff - 1, 0x7fffffff)
HEDDLE_CONVERTED(i64, -0x1p63, 0x1p63, -0x7fffffffffffffffll - 1, 0x7fffffffffffffffll)
HEDDLE_CONVERTED(u8, 0, 0x1p8, 0, 0xffu)
HEDDLE_CONVERTED(u16, 0, 0x1p16, 0, 0xffffu)
HEDDLE_CONVERTED(u32, 0, 0x1p32, 0, 0xffffffffu)
HEDDLE_CONVERTED(u64, 0, 0x1p64, 0, 0xffffffffffffffffull)

// ---------------------------------------------------------------- operations

// Applied after an operation on narrow integers.
HEDDLE_INLINE i32 wrap_i8(i32 x) { return (i32)(i8)x; }
HEDDLE_INLINE i32 wrap_i16(i32 x) { return (i32)(i16)x; }
HEDDLE_INLINE i32 wrap_u8(i32 x) { return x & 0xff; }
HEDDLE_INLINE i32 wrap_u16(i32 x) { return x & 0xffff; }
HEDDLE_INLINE i64 wrap_u32(i64 x) { return x & 0xffffffffll; }

// Sums of integers wrap: they are computed in the unsigned type of the same width.
HEDDLE_INLINE float op_add(float a, float b) { return a + b; }
HEDDLE_INLINE double op_add(double a, double b) { return a + b; }
HEDDLE_INLINE i32 op_add(i32 a, i32 b) { return (i32)((u32)a + (u32)b); }
HEDDLE_INLINE i64 op_add(i64 a, i64 b) { return (i64)((u64)a + (u64)b); }
HEDDLE_INLINE u64 op_add(u64 a, u64 b) { return a + b; }
HEDDLE_INLINE float op_sub(float a, float b) { return a - b; }
HEDDLE_INLINE double op_sub(double a, double b) { return a - b; }
HEDDLE_INLINE i32 op_sub(i32 a, i32 b) { return (i32)((u32)a - (u32)b); }
HEDDLE_INLINE i64 op_sub(i64 a, i64 b) { return (i64)((u64)a - (u64)b); }
HEDDLE_INLINE u64 op_sub(u64 a, u64 b) { return a - b; }
HEDDLE_INLINE float op_mul(float a, float b) { return a * b; }
HEDDLE_INLINE double op_mul(double a, double b) { return a * b; }
HEDDLE_INLINE i32 op_mul(i32 a, i32 b) { return (i32)((u32)a * (u32)b); }
HEDDLE_INLINE i64 op_mul(i64 a, i64 b) { return (i64)((u64)a * (u64)b); }
HEDDLE_INLINE u64 op_mul(u64 a, u64 b) { return a * b; }

template <class T>
struct IsFloat {
  static const bool value = false;
};
template <>
struct IsFloat<float> {
  static const bool value = true;
};
template <>
struct IsFloat<double> {
  static const bool value = true;
};
template <class T>
struct IsSigned {
  static const bool value = (T)-1 < (T)0;
};

// x / 0 is 0, the smallest number / -1 is itself.
template <class T>
HEDDLE_INLINE T op_div(T a, T b) {
  if (IsFloat<T>::value) return a / b;
  if (b == (T)0) return (T)0;
  if (IsSigned<T>::value && b == (T)-1) return op_sub((T)0, a);
  return a / b;
}
HEDDLE_INLINE float op_fmod(float a, float b) { return fmodf(a, b); }
HEDDLE_INLINE double op_fmod(double a, double b) { return fmod(a, b); }
template <class T>
HEDDLE_INLINE T op_fmod(T a, T b) {
  if (b == (T)0 || (IsSigned<T>::value && b == (T)-1)) return (T)0;
  return a % b;
}
// The result has the sign of the divisor.
HEDDLE_INLINE float op_mod(float a, float b) {
  const float r = fmodf(a, b);
  if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
  return r == 0 ? copysignf(0.0f, b) : r;
}
HEDDLE_INLINE double op_mod(double a, double b) {
  const double r = fmod(a, b);
  if (r != 0) return (r < 0) != (b < 0) ? r + b : r;
  return r == 0 ? copysign(0.0, b) : r;
}
template <class T>
HEDDLE_INLINE T op_mod(T a, T b) {
  const T r = op_fmod(a, b);
  return r != (T)0 && (r < (T)0) != (b < (T)0) ? op_add(r, b) : r;
}
HEDDLE_INLINE float op_pow(float a, float b) { return b == 1 ? a : b == 2 ? a * a : powf(a, b); }
HEDDLE_INLINE double op_pow(double a, double b) { return b == 1 ? a : b == 2 ? a * a : pow(a, b); }
template <class T>
HEDDLE_INLINE T op_pow(T base, T exponent) {
  if (exponent < (T)0) return base == (T)1 ? (T)1 : base == (T)-1 ? ((exponent & (T)1) ? base : (T)1) : (T)0;
  T result = (T)1;
  for (; exponent > (T)0; exponent = exponent >> 1) {
    if (exponent & (T)1) result = op_mul(result, base);
    base = op_mul(base, base);
  }
  return result;
}
// A NaN on either side is the result.
template <class T>
HEDDLE_INLINE T op_min(T a, T b) {
  return (a < b) | (a != a) ? a : b;
}
template <class T>
HEDDLE_INLINE T op_max(T a, T b) {
  return (a > b) | (a != a) ? a : b;
}
template <class T>
HEDDLE_INLINE T op_lt(T a, T b) {
  return (T)(a < b);
}
template <class T>
HEDDLE_INLINE T op_le(T a, T b) {
  return (T)(a <= b);
}
template <class T>
HEDDLE_INLINE T op_gt(T a, T b) {
  return (T)(a > b);
}
template <class T>
HEDDLE_INLINE T op_ge(T a, T b) {
  return (T)(a >= b);
}
template <class T>
HEDDLE_INLINE T op_eq(T a, T b) {
  return (T)(a == b);
}
template <class T>
HEDDLE_INLINE T op_ne(T a, T b) {
  return (T)(a != b);
}
template <class T>
HEDDLE_INLINE T op_and(T a, T b) {
  return (T)((a != (T)0) & (b != (T)0));
}
template <class T>
HEDDLE_INLINE T op_or(T a, T b) {
  return (T)((a != (T)0) | (b != (T)0));
}
template <class T>
HEDDLE_INLINE T op_xor(T a, T b) {
  return (T)((a != (T)0) != (b != (T)0));
}
template <class T>
HEDDLE_INLINE T op_not(T a) {
  return (T)(a == (T)0);
}
template <class T>
HEDDLE_INLINE T op_bit_and(T a, T b) {
  return a & b;
}
template <class T>
HEDDLE_INLINE T op_bit_or(T a, T b) {
  return a | b;
}
template <class T>
HEDDLE_INLINE T op_bit_xor(T a, T b) {
  return a ^ b;
}
template <class T>
HEDDLE_INLINE T op_bit_not(T a) {
  return ~a;
}
// Shifts of the width or more give 0.
HEDDLE_INLINE i32 op_shift_left(i32 a, i32 b) { return b < 0 || b >= 32 ? 0 : (i32)((u32)a << b); }
HEDDLE_INLINE i64 op_shift_left(i64 a, i64 b) { return b < 0 || b >= 64 ? 0 : (i64)((u64)a << b); }
HEDDLE_INLINE u64 op_shift_left(u64 a, u64 b) { return b >= 64 ? 0 : a << b; }
template <class T>
HEDDLE_INLINE T op_shift_right(T a, T b) {
  return b < (T)0 || b >= (T)(8 * sizeof(T)) ? (T)0 : a >> b;
}

HEDDLE_INLINE float op_neg(float a) { return -a; }
HEDDLE_INLINE double op_neg(double a) { return -a; }
template <class T>
HEDDLE_INLINE T op_neg(T a) {
  return op_sub((T)0, a);
}
HEDDLE_INLINE float op_abs(float a) { return fabsf(a); }
HEDDLE_INLINE double op_abs(double a) { return fabs(a); }
template <class T>
HEDDLE_INLINE T op_abs(T a) {
  return a < (T)0 ? op_sub((T)0, a) : a;
}
template <class T>
HEDDLE_INLINE T op_sign(T a) {
  return a > (T)0 ? (T)1 : a < (T)0 ? (T)-1 : a != a ? a : (T)0;
}
HEDDLE_INLINE float op_floor(float a) { return floorf(a); }
HEDDLE_INLINE double op_floor(double a) { return floor(a); }
template <class T>
HEDDLE_INLINE T op_floor(T a) {
  return a;
}
HEDDLE_INLINE float op_ceil(float a) { return ceilf(a); }
HEDDLE_INLINE double op_ceil(double a) { return ceil(a); }
template <class T>
HEDDLE_INLINE T op_ceil(T a) {
  return a;
}
HEDDLE_INLINE float op_round(float a) { return rintf(a); }
HEDDLE_INLINE double op_round(double a) { return rint(a); }
template <class T>
HEDDLE_INLINE T op_round(T a) {
  return a;
}
template <class T>
HEDDLE_INLINE T op_isnan(T a) {
  return (T)(a != a);
}
HEDDLE_INLINE float op_isinf(float a) { return (float)(fabsf(a) == __int_as_float(0x7f800000)); }
HEDDLE_INLINE double op_isinf(double a) { return (double)(fabs(a) == __longlong_as_double(0x7ff0000000000000ll)); }
template <class T>
HEDDLE_INLINE T op_select(T condition, T a, T b) {
  return condition != (T)0 ? a : b;
}

HEDDLE_INLINE float op_sqrt(float a) { return sqrtf(a); }
HEDDLE_INLINE double op_sqrt(double a) { return sqrt(a); }
HEDDLE_INLINE float op_rsqrt(float a) { return 1.0f / sqrtf(a); }
HEDDLE_INLINE double op_rsqrt(double a) { return 1.0 / sqrt(a); }
template <class T>
HEDDLE_INLINE T op_reciprocal(T a) {
  return (T)1 / a;
}
HEDDLE_INLINE float op_sigmoid(float a) {
  const float e = expf(-fabsf(a));
  return a < 0 ? e / (1 + e) : 1 / (1 + e);
}
HEDDLE_INLINE double op_sigmoid(double a) {
  const double e = exp(-fabs(a));
  return a < 0 ? e / (1 + e) : 1 / (1 + e);
}
#define HEDDLE_FUNCTION(name)                                   \
  HEDDLE_INLINE float op_##name(float a) { return name##f(a); } \
  HEDDLE_INLINE double op_##name(double a) { return name(a); }
HEDDLE_FUNCTION(exp)
HEDDLE_FUNCTION(log)
HEDDLE_FUNCTION(tanh)
HEDDLE_FUNCTION(erf)
HEDDLE_FUNCTION(sin)
HEDDLE_FUNCTION(cos)
HEDDLE_FUNCTION(tan)
HEDDLE_FUNCTION(asin)
HEDDLE_FUNCTION(acos)
HEDDLE_FUNCTION(atan)
HEDDLE_FUNCTION(sinh)
HEDDLE_FUNCTION(cosh)
HEDDLE_FUNCTION(asinh)
HEDDLE_FUNCTION(acosh)
HEDDLE_FUNCTION(atanh)
HEDDLE_FUNCTION(log1p)
HEDDLE_FUNCTION(expm1)

// ---------------------------------------------------------------- memory

// N elements that are read and written at once, if the address allows it.
template <class T, int N>
struct alignas(sizeof(T) * N) Pack {
  T element[N];
};
