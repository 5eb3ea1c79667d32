// Bindings: what the caller of one context bound: where each input is read and each output is left, and whether a run may work with
// them.
//
// Belongs to one Execution; not used while that runs, but by the run itself. Allocates nothing after construction.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "compile/plan.h"
#include "context/context_memory.h"
#include "context/value_views.h"
#include "heddle/status.h"

namespace heddle {

class Bindings {
 public:
  // All outlive it. Nothing is bound.
  Bindings(const Plan& plan, const ContextMemory& memory, ValueViews& views);
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  // Row-major bytes of the plan's input `i`; borrowed. Null: none.
  void bind_input(size_t i, const void* data);
  // Where output `i` is to be left. Null: in the memory of the context. Without a copy where its bytes are the arena's alone.
  void bind_output(size_t i, void* data);
  void unbind();
  // Dtype, true shape and bytes of output `i`, after a run. Null bytes where the memory moved since, or there was no run.
  TensorView output(size_t i) const;

  // Whether every input is bound. Errors: missing_input, naming all that are not.
  Status check_bound() const { return unbound_inputs_ == 0 ? Status() : missing_inputs(); }
  // Whether the inputs that decide shapes have the content that the plan was made for. Errors: shape_mismatch.
  Status check_contents() const { return plan_.known_inputs.empty() ? Status() : compare_contents(); }
  // Whether no output lies where something else of the run is read or written; looked at once for what is bound. Errors: invalid_argument.
  Status check_overlaps() { return overlaps_checked_ ? Status() : find_overlap(); }

  // A run begins: what the last one left is no more, what comes lies where the memory is now.
  void begin_run() { left_behind_ = false; }
  // A run is complete: leaves the outputs where they are wanted that did not come into being there. `on_device` copies those on devices.
  using CopyOnDevice = std::function<Status(uint8_t device, void* to, const void* from, int64_t bytes)>;
  Status copy_outputs(const CopyOnDevice& on_device) { return copies_ == 0 ? Status() : copy_those_elsewhere(on_device); }
  // The memory, and the views before, have moved: bindings stay, results of the last run are left behind.
  void move();

 private:
  struct Output {
    void* user = nullptr;
    std::vector<uint32_t> views;  // to patch; empty: copied at the end of the run
    std::byte* home = nullptr;    // in the arena
  };
  // Memory that a run reads or writes.
  struct Region {
    enum Kind : uint8_t { memory, input, output };
    uintptr_t begin = 0, end = 0;
    Kind kind = memory;
    size_t index = 0;  // of the input or output
  };
  void find_views();
  Status missing_inputs() const;
  Status compare_contents() const;
  Status find_overlap();
  Status overlap(const Region& a, const Region& b) const;
  std::byte* staged_output(size_t i) const;
  Status copy_those_elsewhere(const CopyOnDevice& on_device);

  const Plan& plan_;
  const ContextMemory& memory_;
  ValueViews& views_;
  std::vector<const void*> inputs_;
  std::vector<std::vector<uint32_t>> input_views_;  // by input: views to patch
  size_t unbound_inputs_ = 0;
  std::vector<Output> outputs_;
  int64_t copies_ = 0;  // outputs that are copied at the end: bound ones that come into being elsewhere, and variables
  std::vector<Region> regions_;
  bool overlaps_checked_ = false;
  bool left_behind_ = true;  // the results of the last run, where the memory was then; and before the first one
};

}  // namespace heddle
