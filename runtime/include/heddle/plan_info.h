// PlanInfo: the plan of a net for given input types. It lists the steps with their kernels, the place of every value, and the memory needed
// on each device, for reading, printing and drawing. A PlanInfo holds copies and keeps nothing alive.
//
//   auto plan = session->plan();                    // or context->plan()
//   for (const auto& step : (*plan)->steps) std::printf("%s on %s\n", step.name.c_str(), step.device.c_str());
//
// Requires C++17. Immutable once made, so any thread may read it. Indices are positions in the vectors of the same plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heddle/export.h"
#include "heddle/status.h"
#include "heddle/tensor.h"

namespace heddle {

struct PlanInfo {
  // The place of a value's bytes. arena: one allocation on the host or on a device, in which the plan gives each value and each step's
  // scratch an offset. unplanned: the size is known only during the run, which then allocates memory outside the arena.
  enum class Place { none, arena, constant, input, variable, unplanned };
  struct Value {
    std::string name;
    DType dtype = DType::none;
    Shape shape;         // a bounded extent is given as its bound
    std::string layout;  // "row-major", "channels-last" or the order of dims, "(0 2 1)"
    int64_t bytes = 0;
    Place place = Place::none;
    size_t device = 0;    // index into `memory`; 0: the host
    uint32_t buffer = 0;  // in an arena: values with the same number share bytes on purpose (views, updates, in-place outputs)
    int64_t offset = 0;   // in the arena, in bytes
  };
  // A value as one step reads or writes it.
  struct Operand {
    std::optional<size_t> value;  // none: an optional input or output that is absent
    std::string layout;
    bool at_enqueue = false;  // for a step on a stream: the host reads the value when it enqueues the step, not when the stream runs it
  };
  struct Step {
    std::string name;  // name of the operator
    std::string type;
    std::string kernel;
    std::string device;               // "cpu:0"
    bool on_stream = false;           // enqueued on a device; else run by a thread of the host
    uint32_t stream = 0;              // number of the stream, on a device other than the host
    std::vector<uint32_t> waits;      // events that the stream waits for before the step
    std::optional<uint32_t> records;  // the event recorded after the step
    std::vector<int64_t> copied;      // the bytes of each copy that the step makes on its stream, in their order
    // The step that launches this collective together with those of other devices: the last of them. None for other steps.
    std::optional<size_t> launched_by;
    int64_t tiles = 1;
    int64_t bytes = 0;                            // read and written
    std::optional<double> flops;                  // of one run, if the operator declares it
    std::vector<std::string> fused, fused_types;  // operators fused into the step
    bool late = false;                            // inferred and prepared during the run
    bool tail = false;       // in the update phase, after all steps that may fail: updates variables, or depends on an update
    bool random = false;     // draws random numbers
    bool auxiliary = false;  // on a device, and computes no operator of the net: a copy, a fence, a check
    bool updates_variable = false;
    int64_t scratch_bytes = 0, scratch_offset = 0;  // in the arena
    int64_t thread_scratch_bytes = 0;
    std::vector<Operand> inputs, outputs;
    std::vector<size_t> successors;  // steps that wait for this one
    // The plans of its subnets, as the body of a Loop, for the types that are known before a run; in the order of its attributes.
    std::vector<std::shared_ptr<const PlanInfo>> subnets;
  };
  // The memory that one context needs on one device, in bytes.
  struct Memory {
    std::string device;  // name of the device: "cpu", "cuda:0"
    // Exactly what a context allocates there: memory for values, for scratch of steps and, on the host, for thread scratch and pinned
    // memory.
    int64_t peak_bytes = 0;
    int64_t arena_bytes = 0;        // the part of peak_bytes for values and step scratch
    int64_t lower_bound_bytes = 0;  // peak_bytes can not be less; lower_bound_kind says for which orders of the steps
    std::string lower_bound_kind;   // "antichain": for any order of the steps; "max-live": for this order
    int64_t sum_bytes = 0;          // the sum of all values and scratch, as if none shared memory
    int64_t scratch_bytes = 0;      // the scratch of the largest step, plus thread scratch
    int64_t persistent_bytes = 0;   // constants and packed constants: held by the plan, not by a context
    int64_t pinned_bytes = 0;       // the part of peak_bytes on the host that is pinned, because devices copy from and to it
    std::string described;          // for a device that does not exist: the properties that its description gives, in words; else empty
  };
  // The order that a plan for several threads of the host has so that values live shorter. `without` says what there would be without it.
  struct MemoryOrder {
    uint32_t lag = 0;    // no step begins before the one that many places before it is done; 0: there is no such bound
    uint32_t edges = 0;  // added between steps
    double length_ns = 0, length_without_ns = 0;  // of a run, simulated
    int64_t arena_bytes = 0, arena_bytes_without = 0;
  };
  struct Change {  // of a layout or of a device
    std::string value, from, to;
    int64_t bytes = 0;
  };
  // An operator that works with the peers of a communicator.
  struct Collective {
    std::string name;    // of the operator; "node/operator" in a net inside a node
    std::string device;  // "cpu:0"
    std::string communicator;
    std::string signature;  // its type, the dtypes and numbers of elements of its inputs, its attributes
    int64_t tensors = 0;    // its inputs, all of which go in one step
    int64_t bytes = 0;      // of these, or their bound where extents are known only during a run; 0 if there is no bound
  };
  struct CommunicatorUse {
    std::string name;
    uint64_t hash = 0;  // of the signatures of its collectives in their order; the ranks compare their hashes before the first step
    std::vector<std::string> devices;  // on which its collectives are launched together; empty: they are on the host
    std::string buckets;               // the rule by which gradients share collectives; empty: the net does not say one
  };
  struct Times {  // of the compiler's stages, in nanoseconds
    int64_t load_ns = 0, resolve_ns = 0, infer_ns = 0, verify_ns = 0, transform_ns = 0, compile_ns = 0, prepare_ns = 0;
  };

  std::string net;
  std::vector<Value> values;
  std::vector<Step> steps;      // in an order in which they may run
  std::vector<size_t> outputs;  // indices into `values`
  std::vector<Memory> memory;   // the host first, then the devices in the order in which the net's operators first use them
  MemoryOrder memory_order;
  std::vector<Change> reorders;  // changes of layout
  std::vector<Change> copies;    // copies between devices, in each run
  // In the order of the net's operators. Each device runs its collectives in this order, which depends neither on threads nor on devices.
  std::vector<Collective> collectives;
  std::vector<CommunicatorUse> communicators;  // by name
  std::vector<Diagnostic> warnings;
  Times times;
  int64_t plans_made = 0;  // plans of the net made so far, this one included: if the number keeps rising, plans are not being reused
};

// A buffer in a device's arena. It is in use at the step at which the arena is fullest.
struct MemoryOwner {
  std::string step;   // the operator that first writes it
  std::string value;  // empty: scratch of the step
  int64_t bytes = 0;
  size_t first_step = 0, last_step = 0;  // in use from first_step to last_step, both included
};

// Returns the buffers that are in use when the arena of `memory[device]` is fullest, the largest first. The fullest step is found by
// assuming that the steps run one after the other in the plan's order. Empty if the arena is empty or there is no such device.
HEDDLE_API std::vector<MemoryOwner> memory_by_owner(const PlanInfo& plan, size_t device = 0);

// The time that a device takes for a work: the operator of a step by its type, or a "copy".
struct WorkCost {
  std::string name;
  int64_t ns = 0;
  double ns_per_byte = 0;  // of all inputs, or of what is copied
};

// The time of a run on its devices, in nanoseconds.
struct PredictedStep {
  int64_t ns = 0;                // until the last work has ended
  int64_t communication_ns = 0;  // of the collectives that are launched together, on the device where they take most
  int64_t exposed_ns = 0;        // by how much the run would be shorter if these took no time
};

// Predicts how long a run of the plan takes on its devices: streams work in the plan's order, wait for their events, and begin a collective
// together. What `costs` does not name takes no time, the host neither. A step whose predecessors include steps of the host begins after
// these. Not counted are the copies that tell a device the seed of a run. Returns zeros if memory runs out. Pure.
HEDDLE_API PredictedStep predict_step(const PlanInfo& plan, const std::vector<WorkCost>& costs);

// The network between the processes that are the ranks of a communicator, as each of them sees it.
struct RankLink {
  int ranks = 1;
  int64_t delay_ns = 0;    // until a message arrives
  int64_t message_ns = 0;  // that a message takes on its thread
  double ns_per_byte = 0;  // of a rank, which receives as many while it sends
  // A byte that a rank receives takes so long from the processor of its steps; zero where its collectives have one of their own.
  double processor_ns_per_byte = 0;
};

// Returns the time that an all-reduce of one tensor takes between ranks on the host, in nanoseconds. Pure.
HEDDLE_API int64_t all_reduce_ns(int64_t bytes, const RankLink& link);

// Predicts how long a run of the plan takes on each of several ranks. `step_ns`: the time of each step in a run of one rank on one thread
// (Profile), parallel to PlanInfo::steps; what it leaves out takes no time. Assumed: each rank has a thread for the steps of the host and
// one for its collectives, which follow each other; those that are no AllGather take as long as an all-reduce of their inputs; ranks begin
// at once, and agree before they update
// variables; nothing else uses the network. Returns zeros if memory runs out. Pure.
HEDDLE_API PredictedStep predict_step(const PlanInfo& plan, const std::vector<int64_t>& step_ns, const RankLink& link);

}  // namespace heddle
