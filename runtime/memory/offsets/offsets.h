// Offsets: where each buffer lies in one slab, so that buffers that may be in use at the same time never share a byte.
//
// Problem -> Solution. All sizes and offsets are bytes, all times are steps (or any integers: only their order counts).
// Pure and deterministic: the same problem and options give the same bytes on every machine; effort is counted in elementary
// operations, never in seconds (a caller who wants a clock passes one as PackOptions::stop). No global state: any thread.
// offsets_check.h checks the answers independently.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "heddle/status.h"

namespace heddle::offsets {

// One buffer. Alive in the half-open interval [first, last): from the step that first writes it up to and including step last - 1,
// the last that uses it.
struct Buffer {
  int64_t first = 0;
  int64_t last = 1;       // > first
  int64_t bytes = 0;      // >= 0; a buffer of no bytes gets offset 0 and collides with nothing
  int64_t alignment = 1;  // power of two; the slab itself is taken to be aligned to the largest
};

// Which buffers may be in use at the same time when steps are ordered only partially. "a before b" (every use of a happens before b is
// first written, in every legal execution) must be transitive, and two buffers interfere when neither is before the other; the
// intervals of the buffers are their lives in one legal serial execution. liveness.h makes these. Immutable, any thread.
class Interference {
 public:
  virtual ~Interference() = default;
  // Symmetric; true at least where the intervals overlap.
  virtual bool interferes(uint32_t a, uint32_t b) const = 0;
  // Returns a time from which on `a` is dead in every execution: a is before every buffer whose `first` is at least this. >= its `last`.
  virtual int64_t settled(uint32_t a) const = 0;
};

enum class LowerBoundKind : uint8_t {
  max_live,  // most bytes alive at one step of the serial order
  antichain  // most bytes of buffers that pairwise interfere: no execution order can do with less
};

struct Problem {
  std::vector<Buffer> buffers;                       // fewer than 2^31
  std::shared_ptr<const Interference> interference;  // null: buffers interfere exactly where their intervals overlap
  int64_t known_lower_bound = 0;                     // for an interference problem, when the caller computed one (an antichain)
};

struct Solution {
  std::vector<int64_t> offsets;  // offsets[i]: the offset of buffers[i], a multiple of its alignment
  int64_t height = 0;            // max offset + bytes
  int64_t lower_bound = 0;       // <= height; no packing is lower
  LowerBoundKind lower_bound_kind = LowerBoundKind::max_live;
  bool optimal = false;     // no packing of this problem is lower: height == lower_bound, or the exact search was exhausted
  const char* method = "";  // the method that found it, e.g. "best-fit" or "search"; static storage
};

// About 10 ms of work on one core of 2020.
inline constexpr int64_t default_effort = 10'000'000;

struct PackOptions {
  // Bytes; a higher packing is an error, and the first one that is not higher ends the work. INT64_MAX: none, the lowest packing is sought.
  int64_t capacity = INT64_MAX;
  // Elementary operations to spend on improving a first packing that is above its lower bound; 0: the first packing alone.
  int64_t effort = default_effort;
  // Polled about every millisecond, by the first packings too; when it returns true, the best packing found so far is returned, with
  // buffers that have no place yet laid on top. May be empty.
  std::function<bool()> stop;
};

// Packs all buffers of `problem` into one slab, as low as `options` allow.
//   Fast first packings (best fit in step order, skylines; O(n log n)), then, while above both the lower bound and the capacity and while
//   effort lasts: greedy gap search in several orders, repair of the order (hill climbing), and a branch-and-bound search after MiniMalloc
//   (Moffitt, ASPLOS 2023), which jumps back over choices that a failure does not rest on. Buffers that never interfere, even through
//   others, are packed apart.
//   invalid_argument: a life without a step, negative bytes, an alignment that is no power of two.
//   limit_exceeded: all buffers together do not fit in 63 bits, or the best packing found is higher than options.capacity.
Result<Solution> pack(const Problem& problem, const PackOptions& options = {});

// Ok when `solution` fits in `capacity` bytes; else limit_exceeded, with the smallest height known and whether a lower one may exist.
Status fits(const Solution& solution, int64_t capacity);

}  // namespace heddle::offsets
