// Bindings: the buffers that the caller of one context bound: where each input is read and each output is written, and whether a run may
// work with them.
//
// Belongs to one Execution. Threads: used between runs, and during a run only by the run itself. Allocates nothing after construction.
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
  // All arguments must outlive it. Nothing is bound at first.
  Bindings(const Plan& plan, const ContextMemory& memory, ValueViews& views);
  Bindings(const Bindings&) = delete;
  Bindings& operator=(const Bindings&) = delete;

  // Binds the row-major bytes of the plan's input `i`; borrowed. Null: unbinds it.
  void bind_input(size_t i, const void* data);
  // Sets where output `i` is written. Null: in the memory of the context. No copy is made if its bytes lie in the arena alone.
  void bind_output(size_t i, void* data);
  void unbind();
  // Returns dtype, true shape and bytes of output `i`, after a run. Null bytes if the memory has moved since, or there was no run.
  TensorView output(size_t i) const;

  // Checks that every input is bound. Errors: missing_input, naming all that are not.
  Status check_bound() const { return unbound_inputs_ == 0 ? Status() : missing_inputs(); }
  // Checks that the inputs that decide shapes have the content that the plan was made for. Errors: shape_mismatch.
  Status check_contents() const { return plan_.known_inputs.empty() ? Status() : compare_contents(); }
  // Checks that no output overlaps other memory that the run reads or writes; done once per set of bindings. Errors: invalid_argument.
  Status check_overlaps() { return overlaps_checked_ ? Status() : find_overlap(); }

  // Begins a run: the results of the previous run are invalid, new ones lie in the current memory.
  void begin_run() { left_behind_ = false; }
  // Copies outputs that were not produced where they are wanted, once a run is complete. `on_device` copies those on devices.
  using CopyOnDevice = std::function<Status(uint8_t device, void* to, const void* from, int64_t bytes)>;
  Status copy_outputs(const CopyOnDevice& on_device) { return copies_ == 0 ? Status() : copy_those_elsewhere(on_device); }
  // Call it when the memory, and then the views, have moved: bindings stay, results of the last run are lost.
  void move();

 private:
  struct Output {
    void* user = nullptr;
    std::vector<uint32_t> views;  // to patch; empty: copied at the end of the run
    std::byte* home = nullptr;    // its buffer in the arena
  };
  // A range of memory that a run reads or writes.
  struct Region {
    enum Kind : uint8_t { memory, input, output };
    uintptr_t begin = 0, end = 0;
    Kind kind = memory;
    size_t index = 0;  // of the input or output
  };
  void find_views();
  // Has the views of the output lie where it is written.
  void patch(const Output& output);
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
  int64_t copies_ = 0;  // outputs that are copied at the end: bound ones that are produced elsewhere, and variables
  std::vector<Region> regions_;
  bool overlaps_checked_ = false;
  bool left_behind_ = true;  // there are no results in the current memory: it has moved since the last run, or there was none
};

}  // namespace heddle
