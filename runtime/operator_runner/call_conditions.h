// CallConditions: what a call of run_operator() runs under, for those who look for mistakes in kernels. Whatever is set here a session may
// do too: a kernel that gives other results, or other tiles, is broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace heddle {

struct Blob;
class PackedConstants;

// Gives a call its memory and sees when its kernel runs.
class CallObserver {
 public:
  enum class Memory : uint8_t { output, scratch, thread_scratch, packed };
  virtual ~CallObserver() = default;
  // Memory for output or thread `index`, or for a packed constant; aligned to 64 bytes, and there as long as the call's results. May be
  // null for 0 bytes.
  virtual std::byte* allocate(Memory of, uint32_t index, int64_t bytes) = 0;
  // Constants are packed, and nothing writes them any more; the kernel has so many tiles, and these HEDDLE_KERNEL_*.
  virtual void prepared(int64_t tiles, uint32_t kernel_flags) = 0;
  // Around run(), start() and finish() of the kernel, but for what the host does for it in between.
  virtual void run_begins() = 0;
  virtual void run_ended() = 0;
};

struct CallConditions {
  // Threads that a run may have, as create() is told. With `other_threads` ranges are run as if each had another one of them, with its
  // index and scratch; all on one thread that is not the caller's.
  uint32_t max_threads = 1;
  bool other_threads = false;
  // What memory holds before the run, and still holds behind its end after it; none: zeros, not compared.
  std::optional<uint8_t> output_fill, scratch_fill, thread_scratch_fill;
  // Kernels of operators without HEDDLE_TRAIT_RANDOM are given seed and step too, which they may not use.
  bool gives_state = false;
  // Bounded outputs have no extent before the kernel writes one.
  bool clears_extents = false;
  // As in a step whose extents change from run to run: the state is prepared and run for these inputs before it is for the call's. What
  // comes of it does not matter; inputs that are refused leave the state as it was made.
  const std::vector<std::shared_ptr<const Blob>>* inputs_before = nullptr;
  // Infer sees the content of shape operands alone, as where a net is compiled before its feeds are there.
  bool hides_content = false;
  // So many rows more stand in input 0, whose true extent along axis 0 the kernel finds in its slot: for HEDDLE_KERNEL_READS_EXTENTS,
  // others are not called (unsupported).
  int64_t rows_beyond = 0;
  // Where packed constants are kept, as for all nodes of a session; null: each call has its own.
  PackedConstants* packed = nullptr;
  CallObserver* observer = nullptr;
};

}  // namespace heddle
