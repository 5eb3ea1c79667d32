// The loops that turn a function of vectors (or of single elements) into an instruction; for files of heddle_isa_sources.
#pragma once

#include "heddle/expression_opcodes.h"
#include "pointwise/pointwise_instructions.h"
#include "vector/simd.h"

namespace heddle::cpu::HEDDLE_ISA {

using Opcode = expression::Opcode;

static inline const char* bytes_of(const InstructionOperand& operand) {
  return static_cast<const char*>(operand.data);
}

template <class V, class F>
static inline void map1(const InstructionOperand* o, void* out, int64_t bytes, F f) {
  const char* a = bytes_of(o[0]);
  const ptrdiff_t a_step = o[0].step * vector_bytes;
  char* y = static_cast<char*>(out);
  for (char* const end = y + bytes; y != end; y += vector_bytes, a += a_step) store(y, f(load<V>(a)));
}
template <class V, class F>
static inline void map2(const InstructionOperand* o, void* out, int64_t bytes, F f) {
  const char *a = bytes_of(o[0]), *b = bytes_of(o[1]);
  const ptrdiff_t a_step = o[0].step * vector_bytes, b_step = o[1].step * vector_bytes;
  char* y = static_cast<char*>(out);
  for (char* const end = y + bytes; y != end; y += vector_bytes, a += a_step, b += b_step) store(y, f(load<V>(a), load<V>(b)));
}
template <class V, class F>
static inline void map3(const InstructionOperand* o, void* out, int64_t bytes, F f) {
  const char *a = bytes_of(o[0]), *b = bytes_of(o[1]), *c = bytes_of(o[2]);
  const ptrdiff_t a_step = o[0].step * vector_bytes, b_step = o[1].step * vector_bytes, c_step = o[2].step * vector_bytes;
  char* y = static_cast<char*>(out);
  for (char* const end = y + bytes; y != end; y += vector_bytes, a += a_step, b += b_step, c += c_step)
    store(y, f(load<V>(a), load<V>(b), load<V>(c)));
}

// One element at a time: library functions and integer division.
template <class T>
static inline T element(const char* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof(T));
  return value;
}
template <class T, class F>
static inline void each1(const InstructionOperand* o, void* out, int64_t bytes, F f) {
  const char* a = bytes_of(o[0]);
  const ptrdiff_t a_step = o[0].step * static_cast<ptrdiff_t>(sizeof(T));
  char* y = static_cast<char*>(out);
  for (char* const end = y + bytes; y != end; y += sizeof(T), a += a_step) {
    const T r = f(element<T>(a));
    __builtin_memcpy(y, &r, sizeof(T));
  }
}
template <class T, class F>
static inline void each2(const InstructionOperand* o, void* out, int64_t bytes, F f) {
  const char *a = bytes_of(o[0]), *b = bytes_of(o[1]);
  const ptrdiff_t a_step = o[0].step * static_cast<ptrdiff_t>(sizeof(T)), b_step = o[1].step * static_cast<ptrdiff_t>(sizeof(T));
  char* y = static_cast<char*>(out);
  for (char* const end = y + bytes; y != end; y += sizeof(T), a += a_step, b += b_step) {
    const T r = f(element<T>(a), element<T>(b));
    __builtin_memcpy(y, &r, sizeof(T));
  }
}

// Entries of a table under construction, `set`: the expression is in terms of vectors (VECTOR) or elements (EACH) a, b, c.
#define HEDDLE_INSTRUCTION_(op, call) \
  set.functions[static_cast<int>(Opcode::op)] = [](const InstructionOperand* o, void* out, int64_t bytes) { call; };
#define HEDDLE_VECTOR1(op, V, expression) HEDDLE_INSTRUCTION_(op, map1<V>(o, out, bytes, [](V a) -> V { return expression; }))
#define HEDDLE_VECTOR2(op, V, expression) HEDDLE_INSTRUCTION_(op, map2<V>(o, out, bytes, [](V a, V b) -> V { return expression; }))
#define HEDDLE_VECTOR3(op, V, expression) HEDDLE_INSTRUCTION_(op, map3<V>(o, out, bytes, [](V a, V b, V c) -> V { return expression; }))
#define HEDDLE_EACH1(op, T, expression) HEDDLE_INSTRUCTION_(op, each1<T>(o, out, bytes, [](T a) -> T { return expression; }))
#define HEDDLE_EACH2(op, T, expression) HEDDLE_INSTRUCTION_(op, each2<T>(o, out, bytes, [](T a, T b) -> T { return expression; }))
#define HEDDLE_EXTENSION1(op, V, expression)                                       \
  set.extensions[op] = [](const InstructionOperand* o, void* out, int64_t bytes) { \
    map1<V>(o, out, bytes, [](V a) -> V { return expression; });                   \
  };

#define HEDDLE_EXTENSION3(op, V, expression)                                       \
  set.extensions[op] = [](const InstructionOperand* o, void* out, int64_t bytes) { \
    map3<V>(o, out, bytes, [](V a, V b, V c) -> V { return expression; });         \
  };

}  // namespace heddle::cpu::HEDDLE_ISA
