// Reductions over the participants of a collective: elements are combined in a tree of fixed order, so that all participants have the same
// bits, whatever the order in which they come and whatever their devices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "shared/collective_reduction.h"
#include "shared/tile_cap.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

using operators::read_reduction;
using operators::Reduction;

// The elements that participants give, wherever they are: those of part i begin at data(user, i).
struct PartElements {
  const void* user;
  const void* (*data)(const void* user, size_t part);
  size_t parts;
};
// Input `tensor` of the contexts, which stay where they are while the result is used.
struct TensorOfParts {
  std::span<const RunContext* const> parts;
  uint32_t tensor;
  PartElements elements() const;
};

// Combines elements [first, first + count) of all parts and calls write(elements, at, n) with consecutive pieces [at, at + n) of the
// result. Part i is combined with part i + 1, pairs with pairs, and so on. 16-bit floats are combined in f32 and rounded once; integers
// wrap, and their mean is truncated; the least and the greatest of NaN and a number are NaN.
class PartReducer {
 public:
  // `from`: the dtype of the parts; `to`: of the result: the same, or one is f32 and the other has 16 bits. `divisor`: of a mean.
  PartReducer(Reduction reduction, const PartElements& parts, heddle_dtype from, heddle_dtype to, int64_t divisor)
      : reduction_(reduction), parts_(parts), from_(from), to_(to), divisor_(divisor) {}
  // Returns when `poll` stops: bool stops(int64_t operations).
  template <class Poll, class Write>
  void reduce(int64_t first, int64_t count, Poll& poll, Write&& write) const {
    alignas(64) char piece[piece_bytes];
    for (int64_t at = first; at < first + count; at += piece_elements) {
      const int64_t n = first + count - at < piece_elements ? first + count - at : piece_elements;
      if (poll.stops(n * static_cast<int64_t>(parts_.parts))) return;
      reduce_piece(at, n, piece);
      write(static_cast<const void*>(piece), at, n);
    }
  }

 private:
  static constexpr int64_t piece_elements = 1024, piece_bytes = 8 * piece_elements;
  void reduce_piece(int64_t first, int64_t count, void* piece) const;
  template <class T>
  void reduce_as(int64_t first, int64_t count, void* piece) const;
  template <class T>
  const T* elements_of(size_t part, int64_t first) const;
  template <class T>
  void combine(size_t begin, size_t end, int64_t first, int64_t count, T* result) const;

  const Reduction reduction_;
  const PartElements parts_;
  const heddle_dtype from_, to_;
  const int64_t divisor_;
};

}  // namespace heddle::cpu
