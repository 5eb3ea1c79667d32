#include "plugin/kernel_call.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text/text.h"
#include "net/layout_order.h"
#include "plugin/infer_operator.h"

namespace heddle {

bool is_launched(const heddle_kernel& kernel, const std::string& device) {
  return !is_host(device) && kernel.device_kind && !(kernel.flags & HEDDLE_KERNEL_MOVES_ONLY) && kernel.device_kind != device_kind(device);
}

KernelCall::KernelCall(const TypedNet& net, const Node& node, std::string device, uint32_t max_threads)
    : registry_(net.registry),
      schema_(node.schema),
      name_(node.name),
      device_(std::move(device)),
      attributes_(std::make_shared<const Attributes>(node)),
      epilogue_ops_(*node.epilogue) {
  const auto add = [&](ValueId id, std::vector<DType>& dtypes, std::vector<char>& present) {
    present.push_back(id.valid() ? 1 : 0);
    dtypes.push_back(id.valid() ? net.type(id).dtype : DType::none);
    types_.push_back(id.valid() ? to_abi(net.type(id)) : heddle_type{});
  };
  types_.reserve(node.inputs.size() + node.outputs.size());
  for (const ValueId id : node.inputs) add(id, input_dtypes_, input_present_);
  for (const ValueId id : node.outputs) add(id, output_dtypes_, output_present_);
  abi_.max_threads = max_threads;
  link();
}

KernelCall::KernelCall(const KernelCall& of, const std::vector<int>& ranks)
    : registry_(of.registry_),
      schema_(of.schema_),
      name_(of.name_),
      device_(of.device_),
      attributes_(of.attributes_),
      epilogue_ops_(of.epilogue_ops_),
      input_dtypes_(of.input_dtypes_),
      output_dtypes_(of.output_dtypes_),
      types_(of.types_),
      input_present_(of.input_present_),
      output_present_(of.output_present_) {
  // Extents of another rank are unknown: they are known only during the run.
  for (size_t i = 0; i < types_.size(); ++i) {
    if (types_[i].rank == ranks[i]) continue;
    types_[i].rank = ranks[i];
    std::fill_n(types_[i].dims, ranks[i], int64_t{HEDDLE_DYNAMIC_DIM});
  }
  abi_.max_threads = of.abi_.max_threads;
  abi_.device_handle = of.abi_.device_handle;
  link();
}

// The ABI's struct points into this object's vectors: it must be set again whenever one of them has changed.
void KernelCall::link() {
  inputs_.clear();
  outputs_.clear();
  abi_epilogue_ops_.clear();
  epilogue_op_pointers_.clear();
  for (size_t i = 0; i < input_present_.size(); ++i) inputs_.push_back(input_present_[i] ? &types_[i] : nullptr);
  for (size_t i = 0; i < output_present_.size(); ++i) outputs_.push_back(output_present_[i] ? &types_[input_present_.size() + i] : nullptr);
  for (const EpilogueOp& s : epilogue_ops_)
    abi_epilogue_ops_.push_back({sizeof(heddle_epilogue_op), s.operand_input, s.operand_kind, 0, s.expression.c_str()});
  for (const heddle_epilogue_op& s : abi_epilogue_ops_) epilogue_op_pointers_.push_back(&s);
  heddle_create_context& c = abi_;
  c.struct_size = sizeof(c);
  c.input_count = static_cast<uint32_t>(inputs_.size());
  c.output_count = static_cast<uint32_t>(outputs_.size());
  c.attribute_count = attributes_->table.size();
  c.inputs = inputs_.data();
  c.outputs = outputs_.data();
  c.attributes = attributes_->table.data();
  c.op = schema_->op;
  c.node_name = name_.c_str();
  c.device = device_.c_str();
  c.epilogue_op_count = static_cast<uint32_t>(abi_epilogue_ops_.size());
  c.epilogue_ops = epilogue_op_pointers_.data();
}

const KernelEntry* KernelCall::find(const KernelEntry* after) const {
  // Operands of an epilogue follow the schema's own inputs.
  size_t own = input_dtypes_.size();
  for (const EpilogueOp& s : epilogue_ops_)
    if (s.operand_input >= 0) own = std::min(own, static_cast<size_t>(s.operand_input));
  return registry_->find_kernel(*schema_, device_kind(device_), std::span(input_dtypes_).first(own), output_dtypes_, after);
}

Status KernelCall::missing(const Net& net, const Node& node) const {
  // A value that was copied to the device is reported by its name in the user's net.
  const auto name_of = [&](ValueId v) {
    for (NodeId from = net[v].producer; from.valid() && net[from].type == "Copy" && net[from].domain == "heddle"; from = net[v].producer)
      v = net[from].inputs[0];
    return quoted(net[v].name);
  };
  std::vector<std::string> inputs;
  for (size_t i = 0; i < input_dtypes_.size(); ++i)
    inputs.push_back(node.inputs[i].valid() ? fmt::format("{} ({})", name_of(node.inputs[i]), to_string(input_dtypes_[i])) : "-");
  return {Code::no_kernel,
          fmt::format("no loaded plugin has a kernel for it on {}{}{}", quoted(device_), inputs.empty() ? "" : " with inputs ",
                      join(inputs, ", ")),
          "insert a Cast, choose another device, or load a plugin that has one"};
}

Status KernelCall::create(const KernelEntry& kernel, CallServices* services, void** state, CallEnd* end) const {
  *state = nullptr;
  if (end) *end = {OperatorPhase::create, HEDDLE_OK};
  if (!kernel.kernel->create) return {};
  CreateCall call(abi_, services);
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = kernel.kernel->create(&call.abi, state);
  } catch (...) {
    call.error.text = "create threw an exception across the plugin boundary";
  }
  if (end) end->answer = status != HEDDLE_OK && call.error.misused ? HEDDLE_ERROR_INTERNAL : status;
  if (status != HEDDLE_OK) *state = nullptr;  // a create that fails returns no state, whatever it wrote
  return status == HEDDLE_OK ? Status() : compile_error(status, call.error);
}

// An order of dimensions is checked here before it is used as an index.
Status KernelCall::check_format(const heddle_format& format) const {
  const auto check = [](const char* what, const heddle_layout* layouts, const std::vector<const heddle_type*>& types) -> Status {
    for (size_t i = 0; i < std::min<size_t>(types.size(), HEDDLE_FORMAT_PORTS); ++i)
      if (types[i] && !is_order(layouts[i], types[i]->rank))
        return {Code::kernel_failed,
                fmt::format("formats() gives {} {} of rank {} a layout that is no order of its dimensions", what, i, types[i]->rank),
                "list each dimension once, or leave the layout row-major"};
    return {};
  };
  HEDDLE_CHECK(check("input", format.inputs, inputs_));
  HEDDLE_CHECK(check("output", format.outputs, outputs_));
  if (std::isfinite(format.cost_ns)) return {};
  return {Code::kernel_failed, fmt::format("formats() gives a choice the cost {}", shortest(format.cost_ns)), "answer a finite cost"};
}

Result<std::vector<heddle_format>> KernelCall::formats(const KernelEntry& kernel) const {
  constexpr uint32_t capacity = 4;
  std::vector<heddle_format> choices(capacity);
  if (!kernel.kernel->formats) return std::vector<heddle_format>();
  CreateCall call(abi_);
  std::vector<heddle_format*> pointers;
  for (heddle_format& choice : choices) {
    choice.struct_size = sizeof(choice);
    pointers.push_back(&choice);
  }
  uint32_t n = 0;
  try {
    // Only a preference: without one the kernel gets row-major values.
    if (kernel.kernel->formats(&call.abi, pointers.data(), capacity, &n) != HEDDLE_OK) n = 0;
  } catch (...) {
    n = 0;
  }
  if (n > capacity)
    return Status(Code::kernel_failed, fmt::format("formats() says that it lists {} choices, where there is room for {}", n, capacity),
                  "list no more than the given capacity");
  choices.resize(n);
  for (const heddle_format& choice : choices) HEDDLE_CHECK(check_format(choice));
  return choices;
}

bool KernelCall::accepts(const KernelEntry& kernel) const {
  if (!kernel.kernel->accepts_epilogue) return false;
  CreateCall call(abi_);
  try {
    return kernel.kernel->accepts_epilogue(&call.abi) != 0;
  } catch (...) {
    return false;
  }
}

bool KernelCall::accepts(const KernelEntry& kernel, const EpilogueOp& epilogue_op, const TensorType* operand) {
  if (!kernel.kernel->accepts_epilogue) return false;
  // The kernel is queried as if the epilogue op were fused already. Whatever it answers, the call is unchanged: fusing is the transform's
  // work.
  const std::vector<heddle_type> types = types_;
  epilogue_ops_.push_back(epilogue_op);
  if (operand) {
    types_.insert(types_.begin() + static_cast<std::ptrdiff_t>(input_present_.size()), to_abi(*operand));
    input_present_.push_back(1);
  }
  link();
  const bool yes = accepts(kernel);
  epilogue_ops_.pop_back();
  if (operand) input_present_.pop_back();
  types_ = types;
  link();
  return yes;
}

}  // namespace heddle
