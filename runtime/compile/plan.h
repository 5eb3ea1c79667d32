// Plan: the compiled form of a net for given input shapes: steps with prepared kernels, dependences, and where every value lies. Immutable;
// shared by all contexts; keeps its plugins loaded and its constants in memory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/device_name.h"
#include "base/rare.h"
#include "base/text/limit_names.h"
#include "base/text/shared_text.h"
#include "device/communicator_turns.h"
#include "device/device.h"
#include "device/resources.h"
#include "memory/offsets/offsets.h"
#include "net/layout_order.h"
#include "net/typed_net.h"
#include "plugin/kernel_call.h"
#include "plugin/kernel_instance.h"
#include "schedule/step_graph.h"

namespace heddle {

struct Plan;
struct LateCompilation;

// The alignment of every value and scratch in an arena, and of the arena itself: a cache line, and the widest vector.
constexpr int64_t arena_alignment = 64;

// The place of a value's bytes.
struct MemoryPlace {
  enum class Kind : uint8_t {
    none,       // it is never read, or no longer needed (packed constants)
    arena,      // at `offset` of the context's arena on its device; on the host, from pinned_offset() on, of its pinned memory
    constant,   // in `constants[index]`, of the plan or of its device
    input,      // the caller's feed `index`
    variable,   // the session's variable `index`, on its device
    unplanned,  // dynamic: allocated while running
  };
  Kind kind = Kind::none;
  uint8_t device = 0;  // 0: the host; d: `Plan::devices[d - 1]`
  uint32_t index = 0;
  int64_t offset = 0;
};

struct PlanValue {
  std::string name;
  TensorType type;
  DimensionOrder layout;
  MemoryPlace place;
  int32_t extent_slot = -1;  // index among the context's extents
};

// A value as one step sees it: the same bytes may be read under another, equivalent layout.
struct Operand {
  ValueId value;  // invalid: absent
  DimensionOrder layout;
};

// A subnet that no run can run: its operators' inputs do not fit them, or no kernel runs them. Another subnet of its operator can, so the
// net is right as long as this one is not reached.
struct ImpossibleSubnet {
  std::shared_ptr<const Net> subnet;
  Status why;  // as seen from the net around it
};

// One subnet of a step, compiled for the types requested by inference.
struct NestedPlan {
  std::shared_ptr<const Net> subnet;
  std::shared_ptr<const Plan> plan;
};

// The work that a step does on a stream.
struct DeviceWork {
  enum class Kind : uint8_t {
    kernel,
    launch,  // a kernel for another kind of device
    copy,    // between host and device, within a device, or from another one
    fence,   // no work: the point at which everything that the stream was given up to the step before is done
    commit,  // copies that decide whether the updates after it are made: what their `holds` are
    faults,  // a copy to the host of what the device has to report: FaultBlock
  };
  Kind kind = Kind::kernel;
  uint8_t device = 1;  // `Plan::devices[device - 1]`
  uint32_t stream = 0;
  int32_t copy_kind = 0;        // HEDDLE_COPY_*
  uint8_t copied_from = 0;      // for HEDDLE_COPY_DEVICE_TO_DEVICE: the device where the source lies; for a commit: the one that decides
  std::vector<uint32_t> waits;  // `Plan::events` that the stream waits for first
  int32_t records = -1;         // the event that is recorded after it, of the step's own device; -1: none
  int64_t staging = -1;         // for a copy that reads a feed: where in the staging memory the feed is put first; -1: it reads none
  int64_t thread_scratch = 0;   // for a launch: offset of its thread's scratch within the step's scratch
  bool from_host = false;       // for a kernel that only moves data: its scratch is on the host, that of its data on the device
  uint64_t reads_host = 0;      // bit i: input i is read on the host when the step is enqueued; from 63 on all share bit 63
  int32_t fence = -1;           // the fence step that is done when the stream has completed this one; -1: none
  // Extent slots of its outputs that are copied to the host before the fence: late steps after it use them to find their extents.
  std::vector<uint32_t> extents;
  bool may_report = false;  // its kernel may report an index that is out of range
  bool held = false;        // for an update: it obeys what the commit on its device has found
  int32_t checks_for = -1;  // for a check of indices: the step that reads them; -1: it is none
  // A group is one step on each of several devices, launched by one call of the last of them in plan order. The others only make their
  // streams wait for what comes before them; what comes after them is enqueued after the last one.
  std::vector<uint32_t> group;  // for the last: the steps of the group in the order of their devices; empty: it is not the last of a group
  int32_t launched_by = -1;     // for the others: the last one; -1: the step is launched by itself

  // Whether the step computes no operator of the net as it was given: a copy, a fence, a commit, a report of faults or a check of indices.
  bool is_auxiliary() const { return (kind != Kind::kernel && kind != Kind::launch) || checks_for >= 0; }

  bool reads_on_host(size_t input) const { return (reads_host >> std::min<size_t>(input, 63) & 1) != 0; }
};

// An input of an update that holds indices into another one, as the operator declares (heddle_port::index_bound_port).
struct IndexInput {
  uint32_t input = 0, of = 0;
  int32_t axis = 0;  // of input `of`
};

// An operator that a step computes after its own.
struct FusedOperator {
  std::string name;
  SharedText type;
};

struct PlanStep {
  std::string name;
  SharedText domain, type;
  const KernelEntry* kernel = nullptr;
  std::unique_ptr<KernelCall> call;                            // for a late step, which creates its kernel while running
  std::shared_ptr<const KernelCall::Attributes> attributes;    // attributes that `state` may point to
  std::unique_ptr<const std::vector<ResourceSlot>> resources;  // by slot; null: its kernel requested none. Destroyed after its state
  KernelState state;
  std::vector<Operand> inputs;
  std::vector<Operand> outputs;
  Rare<std::vector<IndexInput>> indices;  // for an update
  int64_t tiles = 1;
  int64_t scratch_bytes = 0;
  int64_t scratch_offset = 0;
  int64_t data_scratch_bytes = 0;  // for data: on the host within the step's scratch, at data_scratch_offset; else in the device's arena
  int64_t data_scratch_offset = 0;
  int64_t thread_scratch_bytes = 0;
  double cost_ns = 0;
  std::optional<double> flops;  // of one run, as the operator declares; empty: unknown
  int64_t bytes = 0;            // read and written
  uint32_t random_stream = 0;
  uint64_t random_first = 0;       // heddle_run_context::random_first
  uint8_t placed = 0;              // the device that the net places it on; 0: the host, d: Plan::devices[d - 1]
  bool draws : 1 = false;          // draws random numbers
  bool late : 1 = false;           // extents are inferred and the kernel prepared while running
  bool reads_extents : 1 = false;  // its kernel reads the true extents of bounded inputs itself
  bool updates_variable : 1 = false;
  bool collective : 1 = false;  // works with peers, or an operator of a subnet does
  bool suspends : 1 = false;    // gives its thread back while only asynchronous steps of its subnets are left
  Rare<std::vector<NestedPlan>> nested;
  Rare<std::vector<ImpossibleSubnet>> impossible;
  Rare<std::vector<FusedOperator>> fused;  // the operators in its epilogue
  std::unique_ptr<DeviceWork> on_device;   // null: runs on the host

  // True if it is known before the run to use a communicator.
  bool uses_communicator() const {
    return collective || (resources && std::any_of(resources->begin(), resources->end(),
                                                   [](const ResourceSlot& slot) { return slot.of_communicator(); }));
  }
  // True if its kernel's run only starts it.
  bool asynchronous() const { return (kernel->kernel->flags & HEDDLE_KERNEL_ASYNC) != 0; }
};

struct MemoryReport {
  int64_t peak_bytes = 0;  // arena, thread scratch, pinned memory and staging: exactly what a context allocates
  int64_t arena_bytes = 0;
  int64_t lower_bound_bytes = 0;  // bound for arena and pinned memory, plus the thread scratch and staging
  const char* lower_bound_kind = "";
  int64_t sum_bytes = 0;         // without any sharing
  int64_t scratch_bytes = 0;     // largest step scratch plus thread scratch
  int64_t persistent_bytes = 0;  // constants and packed constants
};

// The order that a plan for several threads has for memory's sake: without it, steps that nothing waits for may run late, and what they
// read lives until then. `without`: as if steps were bound only by what they read and by the number of chains (memory/liveness/liveness.h).
struct MemoryOrder {
  uint32_t lag = 0;    // no step begins before the one that many places before it in plan order is done; 0: there is no such bound
  uint32_t edges = 0;  // added to the graph
  double length_ns = 0, length_without_ns = 0;  // of a run on as many threads as the plan is for, simulated
  int64_t arena_bytes = 0, arena_bytes_without = 0;
};

struct LayoutChange {
  std::string value;
  std::string from, to;
  int64_t bytes = 0;
};

// A value that is copied from one device to another in each run.
struct ValueCopy {
  std::string value;
  std::string from, to;
  int64_t bytes = 0;
};

// Memory that a context has on a device, through which kernels there report to the host, and the host holds updates (heddle/abi.h).
struct FaultBlock {
  static constexpr int64_t holds_at = 64;                                                       // after heddle_fault
  static constexpr int64_t max_bytes = holds_at + (1 + UINT8_MAX) * int64_t{sizeof(uint64_t)};  // a plan numbers devices by uint8_t
  // Returns its size. There is a hold for the stop word of the run, and one for the mark of each device.
  static int64_t bytes(size_t devices) { return holds_at + align_up(static_cast<int64_t>((1 + devices) * sizeof(uint64_t)), 64); }
};

// Words of host memory through which the host and a commit tell each other something: a device copies from and to them.
struct CommitWords {
  uint64_t stop = 0;     // set by the host: the updates are not to be made
  uint64_t outcome = 0;  // set by the host to `none`, then by the commit to the stop word that it has found
  static constexpr uint64_t none = UINT64_MAX;
};

// The memory, streams and events that a plan needs of one device other than the host.
struct PlanDevice {
  std::shared_ptr<Device> device;
  std::vector<int32_t> stream_classes;  // of each stream, HEDDLE_STREAM_*
  uint32_t events = 0;
  int64_t arena_bytes = 0;  // values and step scratch
  MemoryReport memory;
  std::vector<std::shared_ptr<const DeviceMemory>> constants;  // uploaded once
  bool may_report = false;                                     // kernels on it may report indices that are out of range
  bool has_block = false;                                      // a context has a FaultBlock there: it reports, or updates on it are held
  int64_t fault_staging = -1;  // where in the staging memory its FaultBlock is copied for the host; -1: nowhere

  // Returns the bytes that follow each value in the arena, after its bytes rounded up to arena_alignment; see heddle_device_properties.
  int64_t guard_bytes() const { return device->properties().guard_bytes; }
};

// An event recorded after a step on a stream, waited for by other streams.
struct PlanEvent {
  uint8_t device = 1;
  uint32_t index = 0;  // among the events of the device
};

// An input whose content the plan was made for: shapes may depend on it.
struct KnownInput {
  uint32_t input = 0;
  std::shared_ptr<const Blob> content;
};

// An operator that works with the peers of a communicator.
struct PlanCollective {
  std::string name;    // of the operator; "node/operator" in a net inside a node
  std::string device;  // where it runs
  std::string communicator;
  std::string signature;           // type, dtypes and element counts of the inputs, attributes; its kernel, unless that is the host's
  int64_t tensors = 0, bytes = 0;  // of its inputs
};

struct Plan {
  std::string net_name;
  std::shared_ptr<const RegistrySnapshot> registry;
  std::shared_ptr<ResourceTable> resources;  // resources that the states of kernels may point to; destroyed after them
  // The collectives in the order of the net's operators, those of subnets included, and the communicators that runs use, by name.
  std::vector<PlanCollective> collectives;
  std::vector<PlanCommunicator> communicators;
  std::vector<CommunicatorNeed> communicator_needs;  // the objects that are known before the run to be needed
  std::vector<PlanValue> values;
  std::vector<PlanStep> steps;
  StepGraph graph;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;
  std::vector<KnownInput> known_inputs;
  std::vector<std::shared_ptr<const Blob>> constants;
  std::vector<std::shared_ptr<const Blob>> packs;
  std::vector<std::string> variables;  // names, by MemoryPlace::index
  int32_t step_counter = -1;           // index of the step counter variable
  uint8_t step_counter_device = 0;     // where it is counted; 0: on the host, else `devices[device - 1]`
  bool draws_on_host = false;          // a step on the host draws random numbers, or one of a subnet may
  uint32_t extent_slots = 0;
  int64_t arena_bytes = 0;           // values and step scratch
  int64_t thread_scratch_bytes = 0;  // per executing thread
  uint32_t max_threads = 1;
  // After the thread scratch: values that devices copy from and to, and the scratch of steps whose subnets have such, where a device pins.
  int64_t pinned_bytes = 0;
  // After that: data that must not lie in memory of the caller or of the session. Feeds while a device reads them, and variables that leave
  // the net, as they were at the end of the run.
  int64_t staging_bytes = 0;
  std::vector<int64_t> output_staging;  // by output: its offset there; -1: it has none
  // Also there: by slot, the extents of values on devices that late steps read; -1: there are none.
  int64_t extent_staging = -1;
  MemoryReport memory;              // of the host
  MemoryOrder memory_order;         // of a plan for the host alone
  std::vector<PlanDevice> devices;  // other than the host
  std::vector<PlanEvent> events;
  std::shared_ptr<Device> pinned_by;  // the device whose copies are to be fast from and to pinned_part(); null: none
  std::vector<LayoutChange> reorders;
  std::vector<ValueCopy> copies;
  std::vector<Diagnostic> warnings;    // of the stages before compile, including notes of operators that moved to the host
  std::vector<Diagnostic> impossible;  // warnings about subnets that no run can run, in nested plans too
  Limits limits;                       // for values whose extents are known only while running
  bool has_late_steps = false;
  bool has_asynchronous_steps = false;          // or steps that suspend
  std::shared_ptr<const LateCompilation> late;  // for compiling subnets of late steps while running; null without such steps
  bool has_variable_updates = false;
  bool uses_faults = false;  // a kernel in it or in a subnet may report indices that are out of range
  // The update phase begins on devices without a look of the host: its steps are enqueued while those before them may still run. Commit
  // steps come first in it. They copy the stop word of the CommitWords in the staging memory, and the marks of all devices that report:
  // what they find decides for all updates.
  bool joins_tail = false;
  uint32_t commits = 0;         // number of commit steps: graph.tail_begin, and those after it
  int64_t commit_staging = -1;  // where the CommitWords are
  bool devices_alone = false;   // every step is on a device and known before the run: the threads of a run call nothing else
  bool only_enqueues = false;   // all steps are on one stream of one device: for a subnet that is run without waiting

  std::string device_of(const PlanStep& step) const { return step.placed == 0 ? host_name : devices[step.placed - 1u].device->name(); }
  // Returns where resources of the step are needed; their stream is not known.
  ResourcePlace place_of(const PlanStep& step) const {
    return {device_of(step), step.on_device ? devices[step.on_device->device - 1u].device : nullptr, nullptr};
  }
  // Bytes and offsets on the host.
  int64_t context_bytes() const { return staging_offset() + staging_bytes; }
  int64_t pinned_offset() const { return arena_bytes + thread_scratch_bytes * max_threads; }
  int64_t staging_offset() const { return pinned_offset() + pinned_bytes; }
  // Returns the number of pinned bytes at the end of the context's memory.
  int64_t pinned_part() const { return pinned_by ? pinned_bytes + staging_bytes : 0; }
};

// True if bytes in layout `a` are bytes in layout `b` for this shape (dims of 1 may be anywhere).
bool same_bytes(const heddle_layout& a, const heddle_layout& b, const Shape& shape);

}  // namespace heddle
