#include "infer/infer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/text/findings.h"
#include "base/text/option_names.h"
#include "base/text/text.h"
#include "infer/late_types.h"
#include "infer/shape_operands.h"
#include "plugin/infer_operator.h"

namespace heddle {
namespace {

class Inference : public CallServices {
 public:
  Inference(TypedNet& typed, const InferOptions& options) : typed_(typed), options_(options) {}

  void run();
  Status node(NodeId id);
  Findings& findings() { return findings_; }

  const std::vector<Attribute>* attributes() const override { return asking_ ? &asking_->attributes : nullptr; }
  Status infer_subnet(const heddle_subnet* subnet, heddle_call::Views inputs, std::span<heddle_type* const> outputs) override;

 private:
  void check_symbols();
  void bind_input(size_t position);
  void bind_to_given(ValueId id, const TensorType& given);
  void bind_to_declared(ValueId id);
  void bind_symbol(const Value& value, const std::string& symbol, int64_t extent);
  Status follow_content(const Node& node);
  Status infer_late(const Node& node);
  bool has_late_operand(const Node& node) const;
  void check_declared(const Node& node);

  TypedNet& typed_;
  const InferOptions& options_;
  const Node* asking_ = nullptr;  // the node whose inference is in progress
  std::vector<Status> refused_;   // failures of subnets of that node
  Findings findings_;
  std::vector<std::pair<std::string, int64_t>> symbols_;
  std::vector<char> relevant_;
  bool late_contents_ = true;     // true: unknown content of a shape operand becomes known in the run; false: it is an error
  bool guesses_extents_ = false;  // extents that an operator shows for a subnet's inputs mean nothing
};

void Inference::bind_symbol(const Value& value, const std::string& symbol, int64_t extent) {
  for (const auto& [name, bound] : symbols_) {
    if (name != symbol) continue;
    if (bound != extent)
      findings_.add(Status(Code::shape_mismatch,
                           fmt::format("input {} has {} for symbol {}, which is {}", quoted(value.name), extent, quoted(symbol), bound),
                           "give the inputs shapes that agree"));
    return;
  }
  symbols_.emplace_back(symbol, extent);
}

// Reports given symbols that the net does not have.
void Inference::check_symbols() {
  if (symbols_.empty()) return;
  const std::vector<std::string> names = symbol_names(typed_.net);
  for (const auto& given : symbols_) {
    if (std::find(names.begin(), names.end(), given.first) != names.end()) continue;
    std::string hint = suggestion(given.first, names);
    if (hint.empty()) hint = names.empty() ? "its inputs have no symbolic extents" : fmt::format("its symbols are {}", join(names, ", "));
    findings_.add(Status(Code::unknown_name, fmt::format("the net has no symbol {}", quoted(given.first)), std::move(hint)));
  }
}

void Inference::bind_input(size_t position) {
  const InputBinding* const given = position < options_.inputs.size() ? &options_.inputs[position] : nullptr;
  if (given && given->type.dtype != DType::none)
    bind_to_given(typed_.net.inputs[position], given->type);
  else
    bind_to_declared(typed_.net.inputs[position]);
}

void Inference::bind_to_given(ValueId id, const TensorType& given) {
  const Value& value = typed_.net[id];
  TensorType& type = typed_.types[id.index];
  if (value.type.dtype != DType::none && given.dtype != value.type.dtype)
    findings_.add(
        Status(Code::dtype_mismatch,
               fmt::format("input {} is {}, the net declares {}", quoted(value.name), to_string(given.dtype), to_string(value.type.dtype)),
               "convert the feed"));
  type = given;
  if (type.dynamic) return;
  if (value.type.ranked && value.type.dims.size() != static_cast<size_t>(type.shape.rank())) {
    findings_.add(Status(Code::shape_mismatch, fmt::format("input {} has shape {}, the net declares rank {}", quoted(value.name),
                                                           type.shape.text(), value.type.dims.size())));
    return;
  }
  for (int i = 0; value.type.ranked && i < type.shape.rank(); ++i) {
    const Dim& dim = value.type.dims[static_cast<size_t>(i)];
    if (dim.kind == Dim::Kind::symbol) bind_symbol(value, dim.symbol, type.shape[i]);
    const bool wrong =
        (dim.kind == Dim::Kind::constant && dim.value != type.shape[i]) || (dim.kind == Dim::Kind::bounded && type.shape[i] > dim.value);
    if (wrong)
      findings_.add(Status(Code::shape_mismatch, fmt::format("input {} has shape {}, the net declares {} along axis {}", quoted(value.name),
                                                             type.shape.text(), dim.value, i)));
  }
}

void Inference::bind_to_declared(ValueId id) {
  const Value& value = typed_.net[id];
  TensorType& type = typed_.types[id.index];
  type.dtype = value.type.dtype;
  if (type.dtype == DType::none) {
    findings_.add(
        Status(Code::dtype_mismatch, fmt::format("input {} has no dtype", quoted(value.name)), "declare one, e.g. \"dtype\": \"f32\"")
            .in_net(typed_.net.name));
    return;
  }
  if (!value.type.ranked) {
    findings_.add(Status(Code::unbound_symbol, fmt::format("the shape of input {} is not known", quoted(value.name)),
                         hint_with("give it with ", option_names::input_shape.text(value.name))));
    return;
  }
  for (const Dim& dim : value.type.dims) {
    int64_t extent = dim.value;
    if (dim.kind == Dim::Kind::symbol) {
      const auto bound = std::find_if(symbols_.begin(), symbols_.end(), [&](const auto& s) { return s.first == dim.symbol; });
      if (bound == symbols_.end()) {
        findings_.add(Status(Code::unbound_symbol,
                             fmt::format("symbol {} of input {} is not bound", quoted(dim.symbol), quoted(value.name)),
                             hint_with("bind it with ", option_names::symbols.text(dim.symbol), " or give the input's shape")));
        extent = 1;
      } else {
        extent = bound->second;
      }
    } else if (dim.kind == Dim::Kind::dynamic) {
      findings_.add(Status(Code::unbound_symbol, fmt::format("an extent of input {} is not known", quoted(value.name)),
                           hint_with("give its shape with ", option_names::input_shape.text(value.name))));
      extent = 1;
    }
    type.shape.push_back(extent);
  }
}

// Computes the content of outputs when that of all inputs is known and it may matter for extents.
Status Inference::follow_content(const Node& node) {
  constexpr uint32_t never = HEDDLE_TRAIT_IMPURE | HEDDLE_TRAIT_RANDOM | HEDDLE_TRAIT_COLLECTIVE;  // others give collectives something too
  if (!options_.evaluator || (node.schema->op->traits & never) != 0) return {};
  bool wanted = false;
  for (const ValueId id : node.outputs) {
    if (!id.valid()) continue;
    wanted = wanted || relevant_[id.index];
    const TensorType& type = typed_.type(id);
    if (type.dynamic || !may_decide_shapes(type.dtype) || type.shape.element_count() > options_.limits.evaluated_elements) return {};
  }
  if (!wanted) return {};
  const bool shape_only = node.schema->has_trait(HEDDLE_TRAIT_SHAPE_ONLY);
  std::vector<std::shared_ptr<const Blob>> inputs;
  for (const ValueId id : node.inputs) {
    if (!id.valid()) {
      inputs.push_back(nullptr);
    } else if (typed_.known[id.index]) {
      inputs.push_back(typed_.known[id.index]);
    } else if (shape_only && !typed_.type(id).late()) {
      // Only the extents are read: a blob without bytes has them.
      auto shape = std::make_shared<Blob>();
      shape->dtype = typed_.type(id).dtype;
      shape->shape = typed_.type(id).shape;
      inputs.push_back(std::move(shape));
    } else {
      return {};
    }
  }
  auto content = options_.evaluator->evaluate(node, inputs);
  if (!content.ok()) {
    const Code code = content.status().code();
    return code == Code::no_kernel || code == Code::unsupported || code == Code::unknown_operator ? Status() : std::move(content).status();
  }
  for (size_t i = 0; i < node.outputs.size() && i < content->size(); ++i)
    if (node.outputs[i].valid()) {
      typed_.known[node.outputs[i].index] = (*content)[i];
      TensorType& type = typed_.types[node.outputs[i].index];
      type.shape = (*content)[i]->shape;  // exact now, also for bounded values
      type.bounded_axis = -1;
      type.follows_bounded = false;
    }
  return {};
}

// Infers a node whose input extents, or contents that decide extents, are known only during the run.
Status Inference::infer_late(const Node& node) {
  std::vector<TensorType> outputs(node.outputs.size());
  guesses_extents_ = true;
  Status status = infer_late_types(typed_, node, outputs, this);
  guesses_extents_ = false;
  HEDDLE_CHECK(std::move(status));
  for (const Status& refused : refused_) HEDDLE_CHECK(may_be_left_out(refused));
  for (size_t i = 0; i < node.outputs.size(); ++i)
    if (node.outputs[i].valid()) typed_.types[node.outputs[i].index] = outputs[i];
  return {};
}

// Whether extents depend on content that differs from run to run. Operators with subnets can infer without it, and calling them twice at
// each depth would take time exponential in the depth.
bool Inference::has_late_operand(const Node& node) const {
  if (!late_contents_ || node.has_subnet()) return false;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const heddle_port* port = node.schema->input_port(i);
    if (port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND) && node.inputs[i].valid() && !typed_.known[node.inputs[i].index]) return true;
  }
  return false;
}

void Inference::check_declared(const Node& node) {
  for (const ValueId id : node.outputs) {
    if (!id.valid()) continue;
    const Value& value = typed_.net[id];
    const TensorType& type = typed_.type(id);
    if (type.dtype == DType::none) continue;  // its producer failed and was reported
    Status wrong;
    if (value.type.dtype != DType::none && value.type.dtype != type.dtype)
      wrong = Status(Code::dtype_mismatch, fmt::format("output {} is {}, the net declares {}", quoted(value.name), to_string(type.dtype),
                                                       to_string(value.type.dtype)));
    if (wrong.ok() && value.type.ranked && !type.dynamic) {
      bool fits = value.type.dims.size() == static_cast<size_t>(type.shape.rank());
      for (size_t i = 0; fits && i < value.type.dims.size(); ++i) {
        const Dim& dim = value.type.dims[i];
        if (dim.kind == Dim::Kind::constant) fits = dim.value == type.shape[static_cast<int>(i)] || type.late();
        if (dim.kind == Dim::Kind::bounded) fits = type.shape[static_cast<int>(i)] <= dim.value;
      }
      if (!fits)
        wrong = Status(Code::shape_mismatch,
                       fmt::format("output {} has shape {}, the net declares another", quoted(value.name), type.shape.text()),
                       "mend the declaration or leave it out");
    }
    findings_.add(std::move(wrong).at(node.name, display_name(node.domain, node.type)));
  }
}

Status Inference::node(NodeId id) {
  const Node& node = typed_.net[id];
  asking_ = &node;
  refused_.clear();
  constexpr size_t few = 8;
  heddle_tensor few_views[few];
  const heddle_tensor* few_inputs[few];
  std::vector<heddle_tensor> many_views;
  std::vector<const heddle_tensor*> many_inputs;
  const size_t count = node.inputs.size();
  if (count > few) {
    many_views.resize(count);
    many_inputs.resize(count);
  }
  heddle_tensor* views = count > few ? many_views.data() : few_views;
  const heddle_tensor** inputs = count > few ? many_inputs.data() : few_inputs;
  bool dynamic = false, bounded = false;
  for (size_t i = 0; i < count; ++i) {
    inputs[i] = nullptr;
    if (!node.inputs[i].valid()) continue;
    const TensorType& type = typed_.type(node.inputs[i]);
    if (type.dtype == DType::none) return {};  // its producer failed and was reported
    dynamic = dynamic || type.dynamic;
    bounded = bounded || type.late();
    const auto& known = typed_.known[node.inputs[i].index];
    views[i] = tensor_view(type.dtype, type.shape, known ? const_cast<std::byte*>(known->data) : nullptr);
    views[i].extent_axis = type.bounded_axis;
    inputs[i] = &views[i];
  }
  if (dynamic) return infer_late(node);
  std::vector<char> wanted(node.outputs.size());
  for (size_t i = 0; i < wanted.size(); ++i) wanted[i] = node.outputs[i].valid() ? 1 : 0;
  std::vector<TensorType> outputs(node.outputs.size());
  Status status = infer_operator(*node.schema, AttributeTable(*node.schema, node.attributes), {inputs, count}, wanted, outputs, this);
  if (status.code() == Code::shape_mismatch && has_late_operand(node)) return infer_late(node);
  HEDDLE_CHECK(std::move(status));
  for (const Status& refused : refused_) HEDDLE_CHECK(may_be_left_out(refused));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!node.outputs[i].valid()) continue;
    outputs[i].follows_bounded = bounded && !outputs[i].dynamic && outputs[i].shape.rank() > 0;
    if (outputs[i].byte_size() > options_.limits.tensor_bytes)
      return over_limit(
          options_.limits, &Limits::tensor_bytes,
          fmt::format("output {} would take {}", quoted(typed_.net[node.outputs[i]].name), human_bytes(outputs[i].byte_size())));
    typed_.types[node.outputs[i].index] = outputs[i];
  }
  return relevant_.empty() ? Status() : follow_content(node);
}

void Inference::run() {
  Net& net = typed_.net;
  symbols_ = options_.symbols;
  check_symbols();
  typed_.types.assign(net.values.size(), {});
  typed_.known.assign(net.values.size(), nullptr);
  const bool content_matters = std::any_of(net.nodes.begin(), net.nodes.end(),
                                           [](const Node& n) { return n.schema && (n.schema->has_shape_operand || n.has_subnet()); });
  // The output of a subnet may decide whether it is run again.
  if (content_matters || options_.contents_vary) relevant_ = shape_relevant_values(net, true, options_.contents_vary);
  if (content_matters && !options_.contents_vary)
    for (const uint32_t i : shape_deciding_inputs(net, options_.limits))
      late_contents_ = late_contents_ && i < options_.inputs.size() && options_.inputs[i].content;
  for (size_t i = 0; i < net.values.size(); ++i) {
    const Value& value = net.values[i];
    const Content* content = value.kind == Value::Kind::constant ? &value.content : nullptr;
    const DeclaredType& declared = value.kind == Value::Kind::variable ? net[value.variable].type : value.type;
    if (content && content->blob) {
      typed_.types[i] = {content->blob->dtype, content->blob->shape};
      typed_.known[i] = content->blob;
    } else if (value.kind == Value::Kind::constant || (value.kind == Value::Kind::variable && !value.producer.valid())) {
      typed_.types[i].dtype = declared.dtype;
      for (const Dim& dim : declared.dims) typed_.types[i].shape.push_back(dim.value);
    }
  }
  // Inputs with given shapes come first: they bind symbols for the others.
  for (const bool with_shape : {true, false})
    for (size_t i = 0; i < net.inputs.size(); ++i) {
      const bool given = i < options_.inputs.size() && options_.inputs[i].type.dtype != DType::none;
      if (given == with_shape) bind_input(i);
    }
  for (size_t i = 0; i < net.inputs.size() && i < options_.inputs.size(); ++i)
    typed_.known[net.inputs[i].index] = options_.inputs[i].content;
  for (size_t i = 0; i < net.nodes.size(); ++i) {
    const Node& n = net.nodes[i];
    if (options_.interruption)
      if (Status over = options_.interruption->status(); !over.ok()) return findings_.add(std::move(over));
    Status status = node(NodeId(i));
    if (!status.ok()) findings_.add(std::move(status).at(n.name, display_name(n.domain, n.type)).in_net(net.name));
    check_declared(n);
  }
}

Status Inference::infer_subnet(const heddle_subnet* subnet, heddle_call::Views inputs, std::span<heddle_type* const> outputs) {
  const Net* net = from_abi(subnet);
  const auto refused = [&](Status status) {
    return refused_.emplace_back(
        from_subnet(std::move(status), net->name, typed_.net.name, asking_->name, display_name(asking_->domain, asking_->type)));
  };
  if (net->inputs.size() != inputs.size())
    return refused({Code::subnet_mismatch, fmt::format("it takes {} inputs, is given {}", net->inputs.size(), inputs.size())});
  InferOptions options = subnet_options(inputs, options_.evaluator, options_.limits);
  options.interruption = options_.interruption;
  for (InputBinding& input : options.inputs) {
    if (!guesses_extents_ || input.content) continue;
    input.type.dynamic = true;
    for (int k = 0; k < input.type.shape.rank(); ++k) input.type.shape[k] = -1;
  }
  Result<TypedNet> typed = infer(*net, typed_.registry, options);
  if (!typed.ok()) return refused(std::move(typed).status());
  if (net->outputs.size() < outputs.size())
    return refused({Code::subnet_mismatch, fmt::format("it has {} outputs, {} are wanted", net->outputs.size(), outputs.size())});
  for (size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) *outputs[i] = subnet_output_type(*typed, i);
  return {};
}

}  // namespace

std::vector<std::string> symbol_names(const Net& net) {
  std::vector<std::string> names;
  for (const ValueId id : net.inputs)
    for (const Dim& dim : net[id].type.dims)
      if (dim.kind == Dim::Kind::symbol && std::find(names.begin(), names.end(), dim.symbol) == names.end()) names.push_back(dim.symbol);
  return names;
}

Status may_be_left_out(const Status& failure) {
  const auto says_so = [](const Diagnostic& d) {
    return d.code == Code::shape_mismatch || d.code == Code::dtype_mismatch || d.code == Code::no_kernel;
  };
  const Diagnostic& d = failure.diagnostic();
  return says_so(d) && std::all_of(d.attached.begin(), d.attached.end(), says_so) ? Status() : failure;
}

InferOptions subnet_options(std::span<const heddle_tensor* const> inputs, Evaluator* evaluator, const Limits& limits) {
  InferOptions options;
  options.evaluator = evaluator;
  options.limits = limits;
  options.contents_vary = true;
  for (const heddle_tensor* view : inputs) {
    InputBinding& input = options.inputs.emplace_back();
    input.type = {static_cast<DType>(view->dtype), Shape(view->dims, view->rank)};
    // Data on a device is not read here: its address means nothing to the host.
    if (view->data && view->space == HEDDLE_SPACE_HOST && view->element_count <= limits.evaluated_elements)
      input.content = Blob::copy_of(input.type.dtype, input.type.shape, view->data);
  }
  return options;
}

TypedNet infer_all(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const InferOptions& options, Findings& findings) {
  TypedNet typed;
  typed.net = std::move(net);
  typed.registry = registry;
  typed.limits = options.limits;
  Inference inference(typed, options);
  inference.run();
  for (const Diagnostic& d : inference.findings().all()) findings.add(Status(d).in_net(typed.net.name));
  return typed;
}

Result<TypedNet> infer(Net net, const std::shared_ptr<const RegistrySnapshot>& registry, const InferOptions& options) {
  Findings findings;
  TypedNet typed = infer_all(std::move(net), registry, options, findings);
  if (findings.failed()) return findings.status();
  return typed;
}

Status infer_node(TypedNet& net, NodeId node) {
  InferOptions options;
  options.limits = net.limits;
  net.types.resize(net.net.values.size());
  net.known.resize(net.net.values.size());
  return Inference(net, options).node(node);
}

Result<std::vector<TensorType>> inferred_types(TypedNet& net, NodeId id, Evaluator* evaluator) {
  InferOptions options;
  options.limits = net.limits;
  options.evaluator = evaluator;
  Node& node = net.net[id];
  // Operands of fused operators follow the operator's own inputs and have no part in its types.
  const std::vector<ValueId> inputs = node.inputs;
  for (const EpilogueOp& epilogue_op : *node.epilogue)
    if (epilogue_op.operand_input >= 0) node.inputs.resize(std::min(node.inputs.size(), static_cast<size_t>(epilogue_op.operand_input)));
  std::vector<TensorType> types;
  for (const ValueId v : node.outputs) types.push_back(v.valid() ? net.type(v) : TensorType());
  Status status = Inference(net, options).node(id);
  node.inputs = inputs;
  for (size_t i = 0; i < types.size(); ++i)
    if (const ValueId v = node.outputs[i]; v.valid()) std::swap(types[i], net.types[v.index]);
  HEDDLE_CHECK(std::move(status));
  return types;
}

}  // namespace heddle
