// The gradient of an operator whose plugin builds it (heddle_gradient_builder).
#include <fmt/format.h>

#include "base/text/text.h"
#include "derive/node_gradient.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"
#include "plugin/schema.h"

namespace heddle {
namespace {

// A handle is the id of a value + 1.
heddle_value_handle handle_of(ValueId value) {
  return value.valid() ? uint64_t{value.index} + 1 : 0;
}

struct BuilderCall : HostCall {
  heddle_gradient_builder abi = {};
  const NodeGradientCall* of = nullptr;
  Emitter* emitter = nullptr;
  std::vector<GradientPart> rows;  // one for each input whose gradient was given as rows
  Status refused;

  bool stands_for_a_value(heddle_value_handle handle) const { return handle <= of->net.values.size(); }
  ValueId value(heddle_value_handle handle) const { return handle == 0 ? ValueId() : ValueId(handle - 1); }
  heddle_status decline(Status status) {
    set_error(HEDDLE_ERROR_INVALID, status.diagnostic().message);
    if (refused.ok()) refused = std::move(status);
    return HEDDLE_ERROR_INVALID;
  }
  heddle_status decline(std::string text) {
    return decline(Status(Code::plugin_invalid, std::move(text), "see heddle/abi.h on what heddle_gradient_builder takes"));
  }
};

BuilderCall& builder_of(const heddle_gradient_builder& abi) {
  return *static_cast<BuilderCall*>(const_cast<heddle_call*>(abi.call));
}

heddle_status emit(const heddle_gradient_builder* abi, const char* domain, const char* name, const heddle_value_handle* inputs,
                   uint32_t input_count, heddle_value_handle* outputs, uint32_t output_count, const heddle_attribute* const* attributes,
                   uint32_t attribute_count) {
  BuilderCall& builder = builder_of(*abi);
  const std::string type = name ? name : "";
  if ((input_count > 0 && !inputs) || (output_count > 0 && !outputs) || (attribute_count > 0 && !attributes))
    return builder.decline(fmt::format("emits {} with inputs, outputs or attributes that are null", quoted(type)));
  std::vector<ValueId> read;
  for (uint32_t i = 0; i < input_count; ++i) {
    if (!builder.stands_for_a_value(inputs[i])) return builder.decline(fmt::format("emits {} on a handle that stands for no value", type));
    read.push_back(builder.value(inputs[i]));
  }
  Result<std::vector<Attribute>> given = attributes_from_abi(attributes, attribute_count);
  if (!given.ok()) return builder.decline(Status(given.status()).during(fmt::format("in an emitted {}", type)));
  auto made = builder.emitter->emit(domain ? domain : "", type, std::move(read), output_count, std::move(*given));
  if (!made.ok()) return builder.decline(made.status());
  for (uint32_t i = 0; i < output_count; ++i) outputs[i] = handle_of((*made)[i]);
  return HEDDLE_OK;
}

heddle_status constant(const heddle_gradient_builder* abi, const heddle_type* type, const void* data, heddle_value_handle* value) {
  BuilderCall& builder = builder_of(*abi);
  if (!type || !value) return builder.decline(fmt::format("adds a constant {} is null", type ? "whose handle" : "whose type"));
  const Result<Shape> shape = shape_from_abi(*type);
  if (!shape.ok()) return builder.decline(shape.status());
  if (!data && shape->element_count() > 0) return builder.decline(fmt::format("adds a constant of shape {} without data", shape->text()));
  *value = handle_of(builder.emitter->constant(Blob::copy_of(static_cast<DType>(type->dtype), *shape, data)));
  return HEDDLE_OK;
}

heddle_status sparse(const heddle_gradient_builder* abi, uint32_t input, heddle_value_handle indices, heddle_value_handle values,
                     uint32_t flags) {
  BuilderCall& builder = builder_of(*abi);
  if (input >= builder.rows.size() || indices == 0 || values == 0 || !builder.stands_for_a_value(indices) ||
      !builder.stands_for_a_value(values))
    return builder.decline(fmt::format("gives rows of input {} by handles that stand for no value", input));
  GradientPart& part = builder.rows[input];
  part.indices = builder.value(indices);
  part.values = builder.value(values);
  part.unique = (flags & HEDDLE_SPARSE_UNIQUE) != 0;
  part.sorted = (flags & HEDDLE_SPARSE_SORTED) != 0;
  return HEDDLE_OK;
}

heddle_status output(const heddle_gradient_builder* abi, uint32_t index, heddle_value_handle* value) {
  BuilderCall& builder = builder_of(*abi);
  if (!value) return builder.decline(fmt::format("asks for output {} and has no place for its handle", index));
  const auto made = builder.emitter->output_of(builder.of->node, index);
  if (!made.ok()) return builder.decline(made.status());
  *value = handle_of(*made);
  return HEDDLE_OK;
}

// ABI views of values, at least one for each port.
struct Ports {
  std::vector<heddle_value_handle> handles;
  std::vector<heddle_type> types;
  std::vector<const heddle_type*> pointers;  // null: absent

  Ports(const PolymorphicTypes& known, const std::vector<ValueId>& values, size_t ports) {
    const size_t count = std::max(values.size(), ports);
    handles.resize(count, 0);
    types.resize(count);
    pointers.resize(count, nullptr);
    for (size_t i = 0; i < values.size(); ++i) {
      if (!values[i].valid()) continue;
      handles[i] = handle_of(values[i]);
      types[i] = known.abi(values[i]);
      pointers[i] = &types[i];
    }
  }
};

}  // namespace

Result<std::vector<GradientPart>> callback_gradient(const NodeGradientCall& call, Emitter& emitter) {
  const Node node = call.forward();  // the net grows
  const heddle_operator& op = *node.schema->op;
  const AttributeTable attributes(*node.schema, node.attributes);
  const Ports inputs(call.types, node.inputs, op.input_count), outputs(call.types, node.outputs, op.output_count);
  std::vector<heddle_value_handle> arrived(outputs.handles.size(), 0), given(inputs.handles.size(), 0);
  std::vector<uint8_t> wanted(inputs.handles.size(), 0);
  for (size_t i = 0; i < call.output_gradients.size(); ++i) arrived[i] = handle_of(call.output_gradients[i]);
  for (size_t i = 0; i < call.wanted.size(); ++i) wanted[i] = call.wanted[i] ? 1 : 0;
  BuilderCall builder;
  builder.of = &call;
  builder.emitter = &emitter;
  builder.rows.resize(given.size());
  builder.abi = {sizeof(builder.abi),
                 static_cast<uint32_t>(inputs.handles.size()),
                 static_cast<uint32_t>(outputs.handles.size()),
                 attributes.size(),
                 host_table(),
                 inputs.handles.data(),
                 outputs.handles.data(),
                 arrived.data(),
                 given.data(),
                 attributes.data(),
                 emit,
                 &builder,
                 &op,
                 inputs.pointers.data(),
                 outputs.pointers.data(),
                 wanted.data(),
                 constant,
                 sparse,
                 output};
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = op.gradient(&builder.abi);
  } catch (...) {
    builder.error.text = "threw an exception across the plugin boundary";
  }
  if (!builder.refused.ok()) return builder.refused;
  if (status != HEDDLE_OK) return plugin_error(Code::unsupported, status, builder.error);
  std::vector<GradientPart> parts(node.inputs.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!builder.stands_for_a_value(given[i]))
      return Status(Code::plugin_invalid, fmt::format("its gradient of input {} is a handle that stands for no value", i),
                    "answer 0 for none, or a handle that the builder gave");
    if (!call.wanted[i]) continue;
    parts[i] = builder.rows[i];
    if (!parts[i].by_rows()) parts[i].dense = builder.value(given[i]);
  }
  return parts;
}

}  // namespace heddle
