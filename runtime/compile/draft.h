// Draft: a plan in the making, passed from one step of compile to the next. Private to compile/.
#pragma once

#include <memory>
#include <vector>

#include "compile/compile.h"

namespace heddle::compiling {

// What is known so far about one node; by NodeId of `Draft::typed`.
struct NodeDraft {
  std::unique_ptr<KernelCall> call;
  const KernelEntry* kernel = nullptr;
  std::vector<heddle_layout> input_layouts;  // what the kernel is promised
  std::vector<heddle_layout> output_layouts;
  bool view = false;  // runs nothing: its output is its input's bytes
  bool late = false;
  bool tail = false;  // a variable update or behind one
  void* state = nullptr;
  heddle_prepare_context prepared = {};
  std::vector<NestedPlan> nested;
};

// Values that share one buffer.
struct Storage {
  Placement placement;
  int64_t bytes = 0;
  bool planned() const { return placement.kind == Placement::Kind::arena; }
};

struct Draft {
  TypedNet typed;
  const CompileOptions& options;
  std::vector<NodeDraft> nodes;
  std::vector<NodeId> order;           // of the nodes that run, views left out
  std::vector<heddle_layout> layouts;  // by ValueId
  std::vector<uint32_t> storage_of;    // by ValueId; UINT32_MAX: none
  std::vector<Storage> storages;
  std::vector<std::vector<uint32_t>> edges;  // by position in `order`: successors
  uint32_t tail_begin = 0;
  Plan plan;

  explicit Draft(TypedNet net, const CompileOptions& o) : typed(std::move(net)), options(o) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft();  // destroys kernel states that did not make it into the plan

  const Node& node(NodeId id) const { return typed.net[id]; }
  NodeDraft& draft(NodeId id) { return nodes[id.index]; }
  std::string device(NodeId id) const { return node(id).device.empty() ? options.default_device : node(id).device; }
  Status at(NodeId id, Status status) const;
};

// In this order:
Status select_kernels(Draft& draft);
Status assign_layouts(Draft& draft);   // inserts Reorder nodes
Status assign_storage(Draft& draft);   // views, updates, in-place
Status order_steps(Draft& draft);      // order, hazard edges, tail
Status prepare_kernels(Draft& draft);  // create, prepare, prepack, nested plans
Status plan_memory(Draft& draft);      // offsets, memory edges, report
Status lay_out(Draft& draft);          // the flat plan

}  // namespace heddle::compiling
