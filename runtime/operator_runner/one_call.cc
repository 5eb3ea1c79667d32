#include "operator_runner/one_call.h"

#include <fmt/format.h>

#include <cstring>

#include "base/checked.h"
#include "base/text/text.h"
#include "plugin/infer_operator.h"

namespace heddle {

// Pads input 0: rows past the true ones hold NaN bit patterns.
Status OneCall::pad() {
  if (call.inputs.empty() || !call.inputs[0] || call.inputs[0]->shape.rank() == 0)
    return {Code::unsupported, "there is no input with rows"};
  const Blob& own = *call.inputs[0];
  Shape shape = own.shape;
  true_rows_ = shape[0];
  shape[0] += call.conditions.rows_beyond;
  std::byte* data = nullptr;
  padded_ = Blob::allocate(own.dtype, shape, &data);
  std::memset(data, 0xff, static_cast<size_t>(padded_->bytes));
  if (own.bytes > 0) std::memcpy(data, own.data, static_cast<size_t>(own.bytes));
  return {};
}

// Checks the attributes like resolve does for the nodes of a net.
Status OneCall::take_attributes() {
  node.attributes = call.attributes;
  for (Attribute& attribute : node.attributes) {
    const int index = node.schema->attribute_index(attribute.name);
    if (index < 0) return {Code::unknown_attribute, fmt::format("attribute {} is unknown", quoted(attribute.name))};
    const heddle_attribute_type wanted = node.schema->op->attributes[index]->type;
    if (!fit_attribute(wanted, &attribute.value))
      return {Code::attribute_mismatch, fmt::format("attribute {} is {}, must be {}", quoted(attribute.name),
                                                    attribute_type_name(attribute_type(attribute.value)), attribute_type_name(wanted))};
  }
  table = AttributeTable(*node.schema, node.attributes);
  for (uint32_t i = 0; i < table.size(); ++i)
    if (node.schema->op->attributes[i]->required && !table.data()[i])
      return {Code::attribute_mismatch,
              fmt::format("attribute {} is missing and has no default", quoted(node.schema->op->attributes[i]->name))};
  return {};
}

Status OneCall::infer() {
  HEDDLE_CHECK(take_attributes());
  if (call.conditions.rows_beyond > 0) HEDDLE_CHECK(pad());
  input_views.reserve(call.inputs.size());
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& blob = i == 0 && padded_ ? padded_ : call.inputs[i];
    if (!blob) {
      inputs.push_back(nullptr);
      continue;
    }
    heddle_tensor view = tensor_view(blob->dtype, blob->shape, const_cast<std::byte*>(blob->data));
    if (i < call.input_layouts.size()) view.layout = call.input_layouts[i];
    input_views.push_back(view);
    inputs.push_back(&input_views.back());
  }
  output_types.resize(call.output_count);
  const std::vector<char> wanted(call.output_count, 1);
  std::vector<heddle_tensor> seen(input_views);
  std::vector<const heddle_tensor*> seen_inputs;
  size_t next = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    heddle_tensor* const view = inputs[i] ? &seen[next++] : nullptr;
    const heddle_port* const port = node.schema->input_port(i);
    if (view && call.conditions.hides_content && !(port && (port->flags & HEDDLE_PORT_SHAPE_OPERAND))) view->data = nullptr;
    seen_inputs.push_back(view);
  }
  const std::span<const heddle_tensor* const> own = std::span(seen_inputs).first(own_inputs());
  HEDDLE_CHECK(infer_operator(*node.schema, table, own, wanted, output_types, &packs, &end));
  if (!node.schema->op->subnets || !call.host) return {};
  return ask_subnets(*node.schema, table, own, wanted, packs, &end);
}

// Called after select(): kernels find the true extent when they run.
void OneCall::bound() {
  if (!padded_) return;
  input_views[0].extent = &true_rows_;
  input_views[0].extent_axis = 0;
}

// Makes the input use the bytes of the output, which begin as a copy of its own.
Status OneCall::share(uint32_t output, uint32_t input) {
  if (output >= output_blobs.size() || input >= inputs.size() || !inputs[input] || !output_blobs[output] ||
      output_blobs[output]->bytes != call.inputs[input]->bytes)
    return {Code::invalid_argument, fmt::format("output {} can not take the bytes of input {}", output, input)};
  void* const bytes = output_views[output].data;
  if (output_blobs[output]->bytes > 0) std::memcpy(bytes, call.inputs[input]->data, static_cast<size_t>(output_blobs[output]->bytes));
  input_views[static_cast<size_t>(inputs[input] - input_views.data())].data = bytes;
  return {};
}

// Returns null when no kernel fits.
const KernelEntry* OneCall::select() {
  const auto add = [&](const TensorType& type) {
    net.types.push_back(type);
    return ValueId(net.types.size() - 1);
  };
  node.name = call.type;
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    const auto& blob = i == 0 && padded_ ? padded_ : call.inputs[i];
    node.inputs.push_back(blob ? add({blob->dtype, blob->shape}) : ValueId());
  }
  for (const TensorType& type : output_types) node.outputs.push_back(add(type));
  for (const OperatorCall::EpilogueOp& s : call.epilogue_ops) {
    EpilogueOp& epilogue_op = node.epilogue.edit().emplace_back();
    epilogue_op.expression = s.expression;
    epilogue_op.operand_input = s.operand_input;
    epilogue_op.operand_kind = s.operand_kind;
  }
  kernel_call.emplace(net, node, "cpu:0", call.conditions.max_threads);
  return kernel_call->find();
}

Status OneCall::allocate_outputs() {
  end = {OperatorPhase::allocate, HEDDLE_OK};
  int64_t total = 0;
  for (const TensorType& type : output_types) {
    int64_t bytes = 0;
    const bool fits = type.dynamic || (checked_byte_size(type.dtype, type.shape, &bytes) && checked_add(total, bytes, &total));
    if (!fits || total > call.limit_bytes)
      return {Code::limit_exceeded, fmt::format("the outputs would take more than {}", human_bytes(call.limit_bytes)),
              "use smaller shapes"};
  }
  output_views.reserve(output_types.size());
  for (size_t i = 0; i < output_types.size(); ++i) {
    const TensorType& type = output_types[i];
    auto& bytes = output_bytes.emplace_back();
    if (!type.dynamic)
      bytes.emplace(call.conditions, CallBytes::Memory::output, static_cast<uint32_t>(i), type.dtype, type.shape,
                    call.conditions.output_fill);
    output_blobs.push_back(bytes ? bytes->blob : nullptr);
    heddle_tensor view = tensor_view(type.dtype, type.shape, bytes ? bytes->data : nullptr);
    if (i < call.output_layouts.size()) view.layout = call.output_layouts[i];
    view.extent_axis = type.bounded_axis;
    if (type.dynamic) view.flags |= HEDDLE_TENSOR_DYNAMIC;
    if (type.bounded_axis >= 0)
      view.extent = &extents.emplace_back(call.conditions.clears_extents ? INT64_MIN : type.shape[type.bounded_axis]);
    output_views.push_back(view);
    outputs.push_back(&output_views.back());
  }
  for (const auto& [output, input] : call.in_place) HEDDLE_CHECK(share(output, input));
  return {};
}

// Only constants may be read in prepare.
const PrepareRequest& OneCall::prepare_request() {
  blind_ = input_views;
  blind_inputs_.clear();
  size_t next = 0;
  for (const heddle_tensor* input : inputs) {
    if (input && !call.constant_inputs) blind_[next].data = nullptr;
    blind_inputs_.push_back(input ? &blind_[next++] : nullptr);
  }
  const_outputs_.assign(outputs.begin(), outputs.end());
  request_.inputs = blind_inputs_;
  request_.outputs = const_outputs_;
  request_.max_threads = call.conditions.max_threads;
  request_.scratch_limit = call.limit_bytes;
  return request_;
}

Status OneCall::make(const KernelEntry& first) {
  if (!call.epilogue_ops.empty() && !kernel_call->accepts(first))
    return {Code::unsupported, fmt::format("kernel {} does not accept this epilogue", first.name)};
  for (heddle_tensor& view : input_views)
    if (call.constant_inputs) view.flags |= HEDDLE_TENSOR_CONSTANT;
  bound();
  const auto other = [&](const KernelEntry& refused) {
    const KernelEntry* kernel = kernel_call->find(&refused);
    while (kernel && !call.epilogue_ops.empty() && !kernel_call->accepts(*kernel)) kernel = kernel_call->find(kernel);
    return kernel;
  };
  HEDDLE_CHECK(make_kernel(*kernel_call, first, other, &prepare_request(), &packs, &made, &end));
  const uint32_t flags = made.kernel->kernel->flags;
  if (padded_ && !(flags & HEDDLE_KERNEL_READS_EXTENTS)) return {Code::unsupported, "its kernel does not read extents"};
  for (size_t i = 0; i < output_types.size(); ++i)
    if (output_types[i].dynamic && !(flags & HEDDLE_KERNEL_DYNAMIC_OUTPUTS)) {
      end.answer = HEDDLE_ERROR_INTERNAL;
      return {Code::unsupported, fmt::format("output {} has no known extents before the operator ran", i)};
    }
  return {};
}

// Prepares and runs a new state with the other inputs first.
Status OneCall::use_before(const RegistrySnapshot& registry) {
  OperatorCall other = call;
  other.inputs = *call.conditions.inputs_before;
  other.conditions = {};
  other.in_place.clear();
  CallEnd ignored;
  OneCall before(registry, other, ignored);
  before.node.schema = node.schema;
  if (!before.infer().ok() || before.select() == nullptr || !before.allocate_outputs().ok()) return {};
  const KernelEntry& kernel = *made.kernel;
  made = {};
  HEDDLE_CHECK(make_kernel(
      *kernel_call, kernel, [](const KernelEntry&) -> const KernelEntry* { return nullptr; }, nullptr, &packs, &made, &end));
  before.made = std::move(made);
  if (prepare_kernel(before.made, before.prepare_request(), &before.packs, &ignored).ok()) static_cast<void>(before.run());
  made = std::move(before.made);
  return prepare_kernel(made, prepare_request(), &packs, &end);
}

// A pack that failed is removed, so that the next request packs again.
const void* PackedConstants::find_or_pack(const OperatorCall& call, uint32_t input, const std::string& key, uint64_t bytes,
                                          heddle_prepack_fill fill, void* user, std::string& error) {
  const auto& of = input < call.inputs.size() ? call.inputs[input] : nullptr;
  if (!of || !call.constant_inputs) {
    error = fmt::format("input {} is not a constant and can not be packed", input);
    return nullptr;
  }
  const Key whole = {of->data, key, bytes};
  if (const auto known = packs_.find(whole); known != packs_.end()) {
    if (known->second.filled) return known->second.bytes.data;
    known->second.asked_for = true;
    error = own_packing;
    return nullptr;
  }
  Pack& made =
      packs_
          .try_emplace(
              whole, Pack{{call.conditions, CallBytes::Memory::packed, static_cast<uint32_t>(packs_.size()), static_cast<int64_t>(bytes)}})
          .first->second;
  error = "packing a constant failed";
  try {
    made.filled = fill(user, made.bytes.data) == HEDDLE_OK && !made.asked_for;
  } catch (...) {
    error = threw_packing;
  }
  if (made.asked_for) error = own_packing;
  if (made.filled) return made.bytes.data;
  packs_.erase(whole);
  return nullptr;
}

}  // namespace heddle
