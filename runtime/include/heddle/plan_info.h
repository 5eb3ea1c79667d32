// What a net became for given input types: steps with their kernels, where every value lies, what each device needs of memory. To read,
// print and draw; it holds copies and keeps nothing alive.
//
//   auto plan = session->plan();                    // of a context: context->plan()
//   for (const auto& step : (*plan)->steps) std::printf("%s on %s\n", step.name.c_str(), step.device.c_str());
//
// C++17. Immutable once made, so it may be read by any thread. Indices are positions in the vectors of the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "heddle/export.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

struct PlanInfo {
  // Where a value's bytes are. unplanned: its extent is known only while running; it is allocated then, outside the arena.
  enum class Place { none, arena, constant, input, variable, unplanned };
  struct Value {
    std::string name;
    DType dtype = DType::none;
    Shape shape;         // at the bound where an extent is bounded
    std::string layout;  // "row-major", "channels-last" or the order of dims, "(0 2 1)"
    int64_t bytes = 0;
    Place place = Place::none;
    size_t device = 0;    // of `memory`; 0: the host
    uint32_t buffer = 0;  // in an arena: values of one number share their bytes on purpose (views, updates, in-place outputs)
    int64_t offset = 0;   // in an arena, in bytes
  };
  // A value as one step reads or writes it.
  struct Operand {
    std::optional<size_t> value;  // none: an optional input or output that is absent
    std::string layout;
    bool at_enqueue = false;  // of a step on a stream: read by the host when the step is enqueued, and not when the stream comes to it
  };
  struct Step {
    std::string name;  // of the operator
    std::string type;
    std::string kernel;
    std::string device;               // "cpu:0"
    bool on_stream = false;           // enqueued on a device; else a thread of the host runs it
    uint32_t stream = 0;              // of a device beside the host
    std::vector<uint32_t> waits;      // events that the stream waits for first
    std::optional<uint32_t> records;  // the event behind it
    int64_t tiles = 1;
    int64_t bytes = 0;                            // read and written
    std::optional<double> flops;                  // of one run, where the operator says
    std::vector<std::string> fused, fused_types;  // operators that became part of it
    bool late = false;                            // inferred and prepared while running
    bool tail = false;                            // runs behind all that may fail: it updates variables, or depends on an update
    bool random = false;                          // draws random numbers
    bool updates_variable = false;
    int64_t scratch_bytes = 0, scratch_offset = 0;  // in the arena
    int64_t thread_scratch_bytes = 0;
    std::vector<Operand> inputs, outputs;
    std::vector<size_t> successors;  // steps that wait for this one
  };
  // What one context needs on one device, in bytes.
  struct Memory {
    std::string device;             // "cpu", then the devices in the order of their first step
    int64_t peak_bytes = 0;         // values, step and thread scratch, pinned memory: exactly what a context allocates there
    int64_t arena_bytes = 0;        // values and step scratch of that
    int64_t lower_bound_bytes = 0;  // no plan of these steps can need less
    std::string lower_bound_kind;   // "antichain": of every order of the steps; "max-live": of this one
    int64_t sum_bytes = 0;          // without any sharing
    int64_t scratch_bytes = 0;      // of the largest step, plus thread scratch
    int64_t persistent_bytes = 0;   // constants, packed constants: of the plan, not of a context
    int64_t pinned_bytes = 0;       // of peak_bytes on the host: what devices copy from and to, and staging, where a device pins memory
    std::string described;          // of a device that is not here: what its backend made up, in words; empty: the device is here
  };
  struct Change {  // of a layout, or of a device
    std::string value, from, to;
    int64_t bytes = 0;
  };
  struct Times {  // of the stages, in nanoseconds
    int64_t load_ns = 0, resolve_ns = 0, infer_ns = 0, verify_ns = 0, transform_ns = 0, compile_ns = 0, prepare_ns = 0;
  };

  std::string net;
  std::vector<Value> values;
  std::vector<Step> steps;       // in an order in which they may run
  std::vector<size_t> outputs;   // values
  std::vector<Memory> memory;    // by device; the host first
  std::vector<Change> reorders;  // of layout
  std::vector<Change> copies;    // between devices, in each run
  std::vector<Diagnostic> warnings;
  Times times;
  int64_t plans_made = 0;  // of the net when this one was made, this one counted: a number that goes on rising says that plans do not last
};

// What holds memory of a device when most of its arena is in use: one row per buffer, the largest first.
struct MemoryOwner {
  std::string step;   // the operator that writes it first
  std::string value;  // the value; empty: scratch of the step
  int64_t bytes = 0;
  size_t first_step = 0, last_step = 0;  // in use from .. to, both included
};

// The rows of the step at which the arena of `memory[device]` is fullest, when steps run in the plan's order; empty: nothing lies there, or
// there is no such device.
HEDDLE_API std::vector<MemoryOwner> memory_by_owner(const PlanInfo& plan, size_t device = 0);

}  // namespace heddle
