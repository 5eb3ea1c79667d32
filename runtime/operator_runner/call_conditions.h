// CallConditions: the conditions of a call of run_operator(), for callers that look for mistakes in kernels. A session may do everything
// that can be set here: a kernel that then gives other results, or other tiles, is broken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace heddle {

struct Blob;
class PackedConstants;

// Provides the memory of a call and observes when its kernel runs.
class CallObserver {
 public:
  enum class Memory : uint8_t { output, scratch, thread_scratch, packed };
  virtual ~CallObserver() = default;
  // Returns memory for output or thread `index`, or for a packed constant; aligned to 64 bytes, and valid as long as the call's results.
  // May be null for 0 bytes.
  virtual std::byte* allocate(Memory of, uint32_t index, int64_t bytes) = 0;
  // Called when constants are packed, and nothing writes them any more; `tiles` and the HEDDLE_KERNEL_* flags are the kernel's.
  virtual void prepared(int64_t tiles, uint32_t kernel_flags) = 0;
  // Called around run(), start() and finish() of the kernel, excluding what the host does in between (subnets, allocations).
  virtual void run_begins() = 0;
  virtual void run_ended() = 0;
};

struct CallConditions {
  // Threads that a run may have, as create() sees it. With `other_threads` ranges are run as if each had another one of them, with its
  // index and scratch; all on one thread that is not the caller's.
  uint32_t max_threads = 1;
  bool other_threads = false;
  // The fill of memory before the run, which must be unchanged past its end after the run; none: zeros, not compared.
  std::optional<uint8_t> output_fill, scratch_fill, thread_scratch_fill;
  // Kernels of operators without HEDDLE_TRAIT_RANDOM also get seed and step, which they may not use.
  bool gives_state = false;
  // Bounded outputs have no extent before the kernel writes one.
  bool clears_extents = false;
  // Like a step whose extents change from run to run: the state is prepared and run for these inputs before those of the call. The results
  // do not matter; inputs that are refused leave the state as it was made.
  const std::vector<std::shared_ptr<const Blob>>* inputs_before = nullptr;
  // Infer sees only the content of shape operands, as when a net is compiled before its feeds are known.
  bool hides_content = false;
  // Input 0 has this number of further rows past its true extent along axis 0, which the kernel finds in the extent slot: for
  // HEDDLE_KERNEL_READS_EXTENTS; other kernels are not called (unsupported).
  int64_t rows_beyond = 0;
  // Shared storage of packed constants, as for all nodes of a session; null: each call has its own.
  PackedConstants* packed = nullptr;
  CallObserver* observer = nullptr;
};

}  // namespace heddle
