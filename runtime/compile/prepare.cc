// Creates and prepares the kernel of each step, packs constants, and compiles the nets inside nets.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/checked.h"
#include "base/text/findings.h"
#include "base/text/text.h"
#include "compile/compiled_subnet.h"
#include "compile/draft.h"
#include "infer/infer.h"
#include "plugin/infer_operator.h"
#include "plugin/kernel_instance.h"
#include "weights/mapping.h"

namespace heddle::compiling {
namespace {

// Answers a kernel's questions while one node is created and prepared.
class NodeServices : public CallServices {
 public:
  NodeServices(Draft& draft, NodeId id) : draft_(draft), id_(id) {}

  Result<uint32_t> need(const heddle_resource_need& asked) override {
    if (!draft_.options.resources) return CallServices::need(asked);
    HEDDLE_TRY(const ResourceNeed need, need_from_abi(asked));
    return slots_.bind(*draft_.options.resources, draft_.typed.registry, need, {draft_.device(id_), draft_.opened(id_)});
  }
  void* resource(uint32_t slot) override { return slots_.object(slot); }

  const void* prepack(uint32_t input, const std::string& key, uint64_t bytes, heddle_prepack_fill fill, void* user,
                      std::string& error) override {
    const Node& node = draft_.node(id_);
    ValueId value = input < node.inputs.size() ? node.inputs[input] : ValueId();
    const bool launched = draft_.launched(id_);
    if (draft_.nodes[id_.index].device != 0 && !launched) {
      error = "constants are packed on the host only";
      return nullptr;
    }
    if (launched && value.valid()) value = draft_.original(value);
    const std::shared_ptr<const Blob> content = value.valid() ? draft_.typed.known[value.index] : nullptr;
    if (!content) {
      error = fmt::format("input {} is not a constant and can not be packed", input);
      return nullptr;
    }
    const auto write = [&](void* destination) {
      try {
        return fill(user, destination) == HEDDLE_OK;
      } catch (...) {
        error = threw_packing;
        return false;
      }
    };
    PackCache& cache = draft_.options.packs ? *draft_.options.packs : own_packs_;
    bool in_circle = false;
    std::shared_ptr<const Blob> packed =
        cache.find_or_pack(*content, draft_.nodes[id_.index].kernel->name + '|' + key, bytes, write, &in_circle);
    if (in_circle) error = own_packing;
    if (!packed) {
      if (error.empty()) error = fmt::format("packing a constant of {} failed", human_bytes(static_cast<int64_t>(bytes)));
      return nullptr;
    }
    if (!launched && std::find(packed_.begin(), packed_.end(), value) == packed_.end()) packed_.push_back(value);
    draft_.plan.packs.push_back(packed);
    return packed->data;
  }

  const std::vector<Attribute>* attributes() const override { return &draft_.node(id_).attributes; }
  Status declare_subnet(const heddle_subnet* subnet, heddle_call::Views inputs) override;

  // Returns the constants of which this node reads only packed forms.
  const std::vector<ValueId>& packed() const { return packed_; }
  // Returns the subnets that were declared and can not be compiled.
  std::vector<ImpossibleSubnet>& impossible() { return impossible_; }
  // Called when the kernel was not made after all.
  void forget() {
    packed_.clear();
    slots_ = {};
  }
  std::vector<ResourceSlot> take_slots() { return std::move(slots_.slots); }

 private:
  Draft& draft_;
  NodeId id_;
  std::vector<ValueId> packed_;
  PackCache own_packs_;  // used where the options have no cache
  std::vector<ImpossibleSubnet> impossible_;
  BoundResources slots_;
};

Status NodeServices::declare_subnet(const heddle_subnet* subnet, heddle_call::Views inputs) {
  const Node& node = draft_.node(id_);
  const std::shared_ptr<const Net> shared = subnet_attribute(node.attributes, from_abi(subnet));
  const uint32_t stream = random_stream_in(draft_.options.body, node.random_stream);
  const uint32_t body = body_id(stream, node.attributes, shared.get());
  const heddle_subnet_ports* const ports = ports_of(*node.schema, node.attributes, shared.get());
  const CompilationTarget target = draft_.nodes[id_.index].device == 0 || !ports
                                       ? draft_.target.for_subnets()
                                       : draft_.target.for_subnets_on(draft_.device(id_), ports->own_inputs, ports->own_outputs);
  const auto compiled = compile_subnet(*shared, draft_.typed.registry, inputs, target, draft_.options, body);
  const auto from_outside = [&](Status status) {
    return from_subnet(std::move(status), shared->name, draft_.typed.net.name, node.name, display_name(node.domain, node.type));
  };
  if (!compiled.ok()) return impossible_.emplace_back(ImpossibleSubnet{shared, from_outside(compiled.status())}).why;
  for (const Diagnostic& inner : (*compiled)->impossible) draft_.plan.impossible.push_back(from_outside(Status(inner)).diagnostic());
  draft_.nodes[id_.index].nested.push_back({shared, *compiled});
  return {};
}

Diagnostic as_warning(const Status& impossible) {
  Diagnostic warning = impossible.diagnostic();
  for (Diagnostic& other : warning.attached) other.severity = Severity::warning;
  warning.severity = Severity::warning;
  warning.message += ", so a run that comes to it fails";
  return warning;
}

class Preparer {
 public:
  explicit Preparer(Draft& draft) : draft_(draft) {}
  Status run();

 private:
  Status compile_subnets(NodeId id);
  bool takes_over(NodeId id, const KernelEntry& next) const;
  Status make(NodeId id);
  Status check_groups() const;
  void launch(NodeId id);
  uint64_t reads_on_host(const Node& node) const;
  Status ask_cost(NodeId id);
  Status within_operations() const;
  void estimate(NodeId id);
  void release(const NodeServices& services);
  heddle_tensor view(ValueId value, const heddle_layout& layout, bool launched) const;
  std::vector<const heddle_tensor*> views(const std::vector<ValueId>& values, const std::vector<heddle_layout>& layouts, bool launched,
                                          std::vector<heddle_tensor>& storage) const;
  const void* host_data(ValueId value) const;
  int64_t scratch_budget(const Node& node) const;

  Draft& draft_;
  std::vector<uint32_t> reads_;  // of constants that still need the original bytes
};

// `launched`: for a kernel that sees all data on the host.
heddle_tensor Preparer::view(ValueId value, const heddle_layout& layout, bool launched) const {
  const TensorType& type = draft_.typed.type(value);
  if (launched) value = draft_.original(value);
  const auto& known = draft_.typed.known[value.index];
  const uint32_t storage = draft_.storage_of[value.index];
  const MemoryPlace place = storage == UINT32_MAX || launched ? MemoryPlace() : draft_.storages[storage].place;
  bool constant = draft_.typed.net[value].kind == Value::Kind::constant && known;
  void* data = constant ? const_cast<std::byte*>(known->data) : nullptr;
  if (place.device != 0 && place.kind == MemoryPlace::Kind::constant) {
    constant = true;
    data = draft_.plan.devices[place.device - 1].constants[place.index]->get();
  }
  heddle_tensor t = tensor_view(type.dtype, type.shape, data);
  t.layout = layout;
  t.extent_axis = type.bounded_axis;
  if (place.device != 0) t.space = HEDDLE_SPACE_DEVICE;
  if (constant) t.flags |= HEDDLE_TENSOR_CONSTANT;
  return t;
}

// Returns null for absent values; the views lie in `storage`.
std::vector<const heddle_tensor*> Preparer::views(const std::vector<ValueId>& values, const std::vector<heddle_layout>& layouts,
                                                  bool launched, std::vector<heddle_tensor>& storage) const {
  storage.resize(values.size());
  std::vector<const heddle_tensor*> pointers(values.size(), nullptr);
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i].valid()) continue;
    storage[i] = view(values[i], i < layouts.size() ? layouts[i] : heddle_layout{}, launched);
    pointers[i] = &storage[i];
  }
  return pointers;
}

// Returns the data of a constant, also of one that was uploaded; null: it is not a constant.
const void* Preparer::host_data(ValueId value) const {
  if (!value.valid()) return nullptr;
  value = draft_.original(value);
  const auto& known = draft_.typed.known[value.index];
  return draft_.typed.net[value].kind == Value::Kind::constant && known ? known->data : nullptr;
}

// Returns the rest of the memory limit after the step's own values.
int64_t Preparer::scratch_budget(const Node& node) const {
  int64_t left = draft_.target.memory_limit;
  std::vector<uint32_t> counted;
  for (const auto* values : {&node.inputs, &node.outputs})
    for (const ValueId value : *values) {
      const uint32_t storage = value.valid() ? draft_.storage_of[value.index] : UINT32_MAX;
      if (storage == UINT32_MAX || !draft_.storages[storage].planned()) continue;
      if (std::find(counted.begin(), counted.end(), storage) != counted.end()) continue;
      counted.push_back(storage);
      left -= draft_.storages[storage].bytes;
    }
  return std::max<int64_t>(left, 0);
}

// Compiles the subnets that the operator declares.
Status Preparer::compile_subnets(NodeId id) {
  const Node& node = draft_.node(id);
  if (!node.has_subnet() || draft_.nodes[id.index].late) return {};
  std::vector<heddle_tensor> storage;
  const std::vector<const heddle_tensor*> inputs = views(node.inputs, {}, false, storage);
  // The known contents, on the host, as when the net was inferred: of the net's inputs, and of constants that lie on a device too.
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!inputs[i]) continue;
    const std::shared_ptr<const Blob>& known = draft_.typed.known[node.inputs[i].index];
    storage[i].data = const_cast<void*>(known ? static_cast<const void*>(known->data) : host_data(node.inputs[i]));
    storage[i].space = HEDDLE_SPACE_HOST;
  }
  std::vector<char> wanted;
  for (const ValueId v : node.outputs) wanted.push_back(v.valid() ? 1 : 0);
  NodeServices services(draft_, id);
  HEDDLE_CHECK(ask_subnets(*node.schema, AttributeTable(*node.schema, node.attributes), inputs, wanted, services));
  // The operator can do without these subnets.
  for (ImpossibleSubnet& subnet : services.impossible()) {
    HEDDLE_CHECK(may_be_left_out(subnet.why));
    draft_.plan.impossible.push_back(as_warning(subnet.why));
    draft_.nodes[id.index].impossible.push_back(std::move(subnet));
  }
  return {};
}

// `next` must accept the layouts promised to the chosen kernel and the fused operators, and have the flags because of which bytes are
// shared.
bool Preparer::takes_over(NodeId id, const KernelEntry& next) const {
  const Node& node = draft_.node(id);
  const NodeDraft& d = draft_.nodes[id.index];
  if (next.kernel->flags != d.kernel->kernel->flags) return false;
  const auto plain = [](const std::vector<heddle_layout>& layouts) {
    return std::all_of(layouts.begin(), layouts.end(), [](const heddle_layout& l) { return l.rank == 0; });
  };
  const auto same = [](const std::vector<heddle_layout>& layouts, const heddle_layout* promised, size_t count) {
    for (size_t i = 0; i < std::min<size_t>(count, HEDDLE_FORMAT_PORTS); ++i)
      if (std::memcmp(&layouts[i], &promised[i], sizeof(heddle_layout)) != 0) return false;
    return true;
  };
  if (!plain(d.input_layouts) || !plain(d.output_layouts)) {
    const auto formats = d.call->formats(next);
    const size_t own = node.epilogue->empty() ? node.inputs.size() : node.schema->op->input_count;
    if (!formats.ok() || std::none_of(formats->begin(), formats->end(), [&](const heddle_format& f) {
          return same(d.input_layouts, f.inputs, std::min(own, node.inputs.size())) &&
                 same(d.output_layouts, f.outputs, node.outputs.size());
        }))
      return false;
  }
  if (node.epilogue->empty()) return true;
  Node before = node;
  const EpilogueOp last = before.epilogue->back();
  before.epilogue.edit().pop_back();
  const TensorType* operand = nullptr;
  if (last.operand_input >= 0) {
    operand = &draft_.typed.type(node.inputs[static_cast<size_t>(last.operand_input)]);
    before.inputs.resize(static_cast<size_t>(last.operand_input));
  }
  return KernelCall(draft_.typed, before, draft_.device(id), draft_.target.max_threads).accepts(next, last, operand);
}

// Creates and prepares the kernel that was chosen, or the next one when it reports that it does not support this node. Late steps are
// prepared when they run, and also created then if ranks are not known before.
Status Preparer::make(NodeId id) {
  const Node& node = draft_.node(id);
  NodeDraft& d = draft_.nodes[id.index];
  if (d.late && d.device != 0) d.made.reads_host = reads_on_host(node);
  const auto dynamic = [&](ValueId value) { return value.valid() && draft_.typed.type(value).dynamic; };
  if (std::any_of(node.inputs.begin(), node.inputs.end(), dynamic)) return {};
  std::vector<heddle_tensor> inputs, outputs;
  const bool launched = draft_.launched(id);
  const std::vector<const heddle_tensor*> input_pointers = views(node.inputs, d.input_layouts, launched, inputs);
  const std::vector<const heddle_tensor*> output_pointers = views(node.outputs, d.output_layouts, launched, outputs);
  if (!draft_.options.prepack)
    for (heddle_tensor& input : inputs) input.flags &= ~HEDDLE_TENSOR_CONSTANT;
  PrepareRequest request;
  request.inputs = input_pointers;
  request.outputs = output_pointers;
  std::vector<const void*> host_data;
  for (const ValueId input : node.inputs) host_data.push_back(draft_.options.prepack ? this->host_data(input) : nullptr);
  request.host_data = host_data;
  request.max_threads = draft_.target.max_threads;
  if (d.group >= 0) {
    const std::vector<NodeId>& group = draft_.groups[static_cast<size_t>(d.group)];
    request.group_size = static_cast<uint16_t>(group.size());
    request.group_index = static_cast<uint16_t>(std::find(group.begin(), group.end(), id) - group.begin());
    const std::string communicator = communicator_of(node);
    request.rank = draft_.options.rank_in ? static_cast<uint32_t>(draft_.options.rank_in(communicator)) : 0;
    request.rank_count = draft_.options.ranks_of ? static_cast<uint32_t>(draft_.options.ranks_of(communicator)) : 1;
  }
  request.scratch_limit = draft_.target.limits.plan_bytes;
  request.scratch_budget = scratch_budget(node);
  NodeServices services(draft_, id);
  const auto next = [&](const KernelEntry& refused) {
    const KernelEntry* other = d.call->find(&refused);
    while (other && !takes_over(id, *other)) other = d.call->find(other);
    if (other) d.kernel = other;
    d.made = {};
    services.forget();
    return other;
  };
  HEDDLE_CHECK(make_kernel(*d.call, *d.kernel, next, d.late ? nullptr : &request, &services, &d.made));
  d.resources = services.take_slots();
  if (launched) launch(id);
  if (d.late && d.device != 0) d.made.reads_host = reads_on_host(node);
  if (d.device != 0 && (d.kernel->kernel->flags & HEDDLE_KERNEL_MOVES_ONLY)) {
    d.made.reads_host = reads_on_host(node);
    if (d.made.data_scratch_bytes > 0) d.made.scratch_bytes = d.made.data_scratch_at;
  }
  release(services);
  return {};
}

uint64_t Preparer::reads_on_host(const Node& node) const {
  uint64_t bits = 0;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    if (node.inputs[i].valid() && draft_.device_of(node.inputs[i]) == 0) bits |= uint64_t{1} << std::min<size_t>(i, 63);
  return bits;
}

// Adapts the step to a kernel written to run on the host: it reads host data when it is enqueued, and has the scratch of one thread in that
// of the step.
void Preparer::launch(NodeId id) {
  const Node& node = draft_.node(id);
  NodeDraft& d = draft_.nodes[id.index];
  d.made.reads_host = reads_on_host(node);
  d.thread_scratch_offset = align_up(d.made.scratch_bytes, arena_alignment);
  d.made.scratch_bytes = d.thread_scratch_offset + d.made.thread_scratch_bytes;
  d.made.thread_scratch_bytes = 0;
}

Status Preparer::ask_cost(NodeId id) {
  NodeDraft& d = draft_.nodes[id.index];
  HEDDLE_TRY(d.cost, operator_cost(draft_.typed, draft_.node(id), d.call->attributes()->table));
  return {};
}

double operations_of(const Plan& plan) {
  double sum = 0;
  for (const PlanStep& step : plan.steps) {
    sum += step.flops.value_or(0);
    for (const NestedPlan& nested : *step.nested) sum += operations_of(*nested.plan);
  }
  return sum;
}

// Called before kernels are made, and again with the nets inside this one. In double: it holds any sum, and a limit does not depend on a
// last digit.
Status Preparer::within_operations() const {
  double sum = 0, most = 0;
  NodeId largest;
  for (const NodeId id : draft_.order) {
    const NodeDraft& d = draft_.nodes[id.index];
    double own = d.cost.flops.value_or(0);
    for (const NestedPlan& nested : d.nested) own += operations_of(*nested.plan);
    sum += own;
    if (own > most) most = own, largest = id;
  }
  if (sum <= static_cast<double>(draft_.target.limits.operations)) return {};
  const Node& node = draft_.node(largest);
  return over_limit(draft_.target.limits, &Limits::operations,
                    fmt::format("a run takes {} operations, most of them ({}) in operator {} ({})", shortest(sum), shortest(most),
                                quoted(node.name), display_name(node.domain, node.type)));
}

// A kernel that declares no cost is assumed as fast as memory and arithmetic of one thread usually are; operators that declare none either
// stay unknown.
void Preparer::estimate(NodeId id) {
  constexpr double flops_per_ns = 8, bytes_per_ns = 8, call_ns = 50;
  NodeDraft& d = draft_.nodes[id.index];
  if (d.made.cost_ns == 0 && d.cost.flops && d.device == 0)
    d.made.cost_ns = call_ns + *d.cost.flops / flops_per_ns + static_cast<double>(d.cost.bytes) / bytes_per_ns;
}

// The original of a constant leaves memory as soon as its last reader has packed it.
void Preparer::release(const NodeServices& services) {
  for (const ValueId value : services.packed()) {
    if (--reads_[value.index] == 0) drop_constant(draft_, value);
  }
}

// The members of a group are launched by the kernel of one of them.
Status Preparer::check_groups() const {
  for (const std::vector<NodeId>& group : draft_.groups) {
    const KernelEntry* const first = draft_.nodes[group[0].index].kernel;
    for (const NodeId member : group)
      if (const KernelEntry* const own = draft_.nodes[member.index].kernel; own != first)
        return draft_.at(member, {Code::unsupported,
                                  fmt::format("has the kernel {}, and {}, which is launched with it, has {}", quoted(own->name),
                                              quoted(draft_.node(group[0]).name), quoted(first->name)),
                                  "a memory limit may leave one of them too little: raise it"});
  }
  return {};
}

Status Preparer::run() {
  const Net& net = draft_.typed.net;
  reads_.assign(net.values.size(), 0);
  for (const ValueId id : net.outputs) ++reads_[id.index];
  for (const NodeId id : draft_.order) {
    std::vector<ValueId> distinct = net[id].inputs;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    for (const ValueId v : distinct)
      if (v.valid()) ++reads_[v.index];
  }
  // A view of a constant reads it too.
  for (const Node& node : net.nodes)
    if (draft_.nodes[static_cast<size_t>(&node - net.nodes.data())].view && node.inputs[0].valid()) ++reads_[node.inputs[0].index];
  Findings findings;
  for (const NodeId id : draft_.order) findings.add(draft_.at(id, ask_cost(id)));
  if (findings.failed()) return findings.status();
  HEDDLE_CHECK(within_operations());
  for (const NodeId id : draft_.order) {
    if (draft_.options.interruption) HEDDLE_CHECK(draft_.options.interruption->status());
    Status status = compile_subnets(id);
    if (status.ok()) status = make(id);
    if (status.ok()) estimate(id);
    findings.add(draft_.at(id, std::move(status)));
  }
  if (findings.failed()) return findings.status();
  HEDDLE_CHECK(check_groups());
  for (const ValueId constant : draft_.only_uploaded) drop_constant(draft_, constant);
  return within_operations();
}

}  // namespace

void drop_constant(Draft& draft, ValueId constant) {
  std::shared_ptr<const Blob>& known = draft.typed.known[constant.index];
  if (const Mapping* mapping = Mapping::of(*known)) mapping->release(known->data, known->bytes);
  const uint32_t storage = draft.storage_of[constant.index];
  draft.plan.constants[draft.storages[storage].place.index] = nullptr;
  draft.storages[storage].place.kind = MemoryPlace::Kind::none;
  draft.typed.net[constant].content.blob = nullptr;
  known = nullptr;
}

Status prepare_kernels(Draft& draft) {
  return Preparer(draft).run();
}

}  // namespace heddle::compiling
