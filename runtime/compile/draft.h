// Draft: a plan in the making, passed from one pass of compile to the next. Private to compile/.
#pragma once

#include <memory>
#include <vector>

#include "compile/compile.h"
#include "device/locations.h"
#include "plugin/kernel_instance.h"
#include "plugin/operator_cost.h"

namespace heddle::compiling {

// The state of one node so far; by NodeId of `Draft::typed`.
struct NodeDraft {
  std::unique_ptr<KernelCall> call;
  const KernelEntry* kernel = nullptr;
  std::vector<heddle_layout> input_layouts;  // the layouts that the kernel is promised
  std::vector<heddle_layout> output_layouts;
  bool view = false;      // runs nothing: its output is its input's bytes
  bool uploaded = false;  // a copy of a constant, made once when the plan is made
  bool late = false;
  bool reads_extents = false;  // bounded inputs do not make it late
  bool tail = false;           // a variable update, or after one
  uint8_t device = 0;          // the device on whose stream it is enqueued; 0: it runs on the host
  uint32_t stream = 0;
  bool may_report = false;              // as DeviceWork::may_report
  int32_t group = -1;                   // index among Draft::groups
  int64_t staging = -1;                 // as DeviceWork::staging
  int64_t thread_scratch_offset = 0;    // for a step that its device launches: offset of its thread's scratch within the step's scratch
  std::vector<ResourceSlot> resources;  // those that its kernel requested: destroyed after it
  KernelInstance made;
  OperatorCost cost;
  std::vector<NestedPlan> nested;
  std::vector<ImpossibleSubnet> impossible;
};

// Values that share one buffer.
struct Storage {
  MemoryPlace place;
  int64_t bytes = 0;
  bool pinned = false;  // on the host, where a device copies it from or to
  bool planned() const { return place.kind == MemoryPlace::Kind::arena; }
};

struct Draft {
  TypedNet typed;
  const CompilationTarget& target;
  const CompileOptions& options;
  std::vector<NodeDraft> nodes;
  std::vector<NodeId> order;           // the nodes that run, without views
  std::vector<heddle_layout> layouts;  // by ValueId
  std::vector<uint32_t> storage_of;    // by ValueId; UINT32_MAX: none
  std::vector<Storage> storages;
  std::unique_ptr<Locations> locations;      // null: everything is on the host
  std::vector<std::vector<uint32_t>> edges;  // by position in `order`: successors
  uint32_t tail_begin = 0;
  std::vector<std::vector<NodeId>> groups;  // of collectives that are launched by one call, in the order of their devices
  std::vector<NodeId> batch_parts;          // by node, as net/batch_parts.h finds them
  std::vector<ValueId> only_uploaded;       // constants that no step on the host reads: their bytes are freed once the kernels are made
  Plan plan;

  Draft(TypedNet net, const CompilationTarget& t, const CompileOptions& o) : typed(std::move(net)), target(t), options(o) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;

  const Node& node(NodeId id) const { return typed.net[id]; }
  // For a subnet: true if it is a variable of the net around it, whose bytes an input brings.
  bool is_input(const Variable& variable) const {
    const uint32_t storage = storage_of[variable.first.index];
    return storage != UINT32_MAX && storages[storage].place.kind == MemoryPlace::Kind::input;
  }
  // Returns the slot of a variable in the session's store.
  uint32_t slot_of(VariableId id) const { return options.variable_slots ? options.variable_slots->of[id.index] : id.index; }
  NodeDraft& draft(NodeId id) { return nodes[id.index]; }
  const std::string& device(NodeId id) const { return typed.device_of(node(id)); }
  // 0: the host; d: plan.devices[d - 1].
  uint8_t device_of(ValueId id) const { return locations ? static_cast<uint8_t>(locations->of(id).index) : uint8_t{0}; }
  // Null on the host.
  std::shared_ptr<Device> opened(NodeId id) const {
    return locations && locations->of(id) != host_device ? plan.devices[locations->of(id).index - 1].device : nullptr;
  }
  // True if its kernel was written for another kind of device than the node's, which launches it.
  bool launched(NodeId id) const;
  // Returns the constant that `value` was uploaded from, or `value`.
  ValueId original(ValueId value) const {
    const NodeId producer = typed.net[value].producer;
    return producer.valid() && nodes[producer.index].uploaded ? typed.net[producer].inputs[0] : value;
  }
  // For a prepared node: true if its kernel may leave its thread while asynchronous steps of its subnets are in progress.
  bool suspends(NodeId id) const;
  Status at(NodeId id, Status status) const;
};

// The passes, in this order:
Status find_devices(Draft& draft);  // opens them
Status select_kernels(Draft& draft);
Status assign_layouts(Draft& draft);  // inserts Reorder nodes
Status assign_storage(Draft& draft);  // views, updates, in-place
Status upload_constants(Draft& draft);
Status find_groups(Draft& draft);      // which collectives are launched by one call
Status order_steps(Draft& draft);      // order, hazard edges, update phase
Status pace_sums(Draft& draft);        // terms of long sums are computed one after the other
Status assign_streams(Draft& draft);   // which stream each step is enqueued on, and their order
Status prepare_kernels(Draft& draft);  // create, prepare, prepack, nested plans
Status plan_faults(Draft& draft);      // which devices report faults, and whether the update phase joins on devices
Status plan_staging(Draft& draft);     // the memory after the arena
Status plan_memory(Draft& draft);      // offsets, memory edges, report
Status lay_out(Draft& draft);          // the flat plan
Status add_fault_steps(Draft& draft);  // checks of indices, commits, reports of faults
Status add_fences(Draft& draft);       // makes dependences on streams hold: fences and events

// Return the communicator of a collective, and what ranks compare of it: its type, the dtypes and numbers of elements of its inputs, and
// its attributes, but no name.
std::string communicator_of(const Node& node);
std::string collective_signature(const TypedNet& typed, const Node& node);

// Part of lay_out: the collectives of the plan and their communicators, once its steps are laid out.
void lay_out_collectives(Draft& draft);

// Return kernel entries of steps that the runtime carries out itself on a stream: no plugin's kernel runs.
const KernelEntry* device_copy_kernel();
const KernelEntry* fence_kernel();
const KernelEntry* commit_kernel();
const KernelEntry* faults_kernel();
// Frees the bytes of a constant that is not read any more.
void drop_constant(Draft& draft, ValueId constant);

}  // namespace heddle::compiling
