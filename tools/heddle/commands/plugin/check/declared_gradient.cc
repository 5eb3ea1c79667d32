#include "commands/plugin/check/declared_gradient.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/text/text.h"
#include "plugin/abi_attributes.h"
#include "plugin/host.h"

namespace heddle::tool {
namespace {

using Blobs = std::vector<std::shared_ptr<const Blob>>;

// ---------------------------------------------------------------- emitted nodes

// Whether a role is absent in the fragment: an optional input that was not given, or an optional output that was not requested, and its
// gradient.
bool is_absent(const OperatorSchema& schema, const OperatorCall& call, const std::string& role) {
  for (uint32_t i = 0; i < schema.op->input_count; ++i)
    if ((i >= call.inputs.size() || !call.inputs[i]) && (role == schema.op->inputs[i]->name || role == fmt::format("x{}", i))) return true;
  for (auto i = static_cast<uint32_t>(call.output_count); i < schema.op->output_count; ++i) {
    const std::string name = schema.op->outputs[i]->name;
    if (role == name || role == "d" + name || role == fmt::format("y{}", i) || role == fmt::format("dy{}", i)) return true;
  }
  return false;
}

// Whether output `output` of emitted node `node` is used: it is the gradient of an input, or a later node reads it.
bool is_read(const OperatorSchema& schema, const OperatorCall& call, uint32_t node, const std::string& output) {
  const heddle_operator& op = *schema.op;
  for (size_t i = 0; i < std::max<size_t>(call.inputs.size(), op.input_count); ++i)
    if (output == fmt::format("dx{}", i) || (i < op.input_count && output == std::string("d") + op.inputs[i]->name)) return true;
  for (uint32_t n = node + 1; n < op.gradient_node_count; ++n)
    for (uint32_t i = 0; i < op.gradient_nodes[n]->input_count; ++i)
      if (output == op.gradient_nodes[n]->inputs[i]) return true;
  return false;
}

Gradients run_nodes(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs,
                    const Blobs& output_gradients) {
  const heddle_operator& op = *schema.op;
  std::map<std::string, std::shared_ptr<const Blob>> values;
  const auto name_both = [&](const char* number, const std::string& prefix, const heddle_port* port, size_t i,
                             const std::shared_ptr<const Blob>& value) {
    if (!value) return;
    values[number + fmt::to_string(i)] = value;
    if (port) values[prefix + port->name] = value;
  };
  for (size_t i = 0; i < call.inputs.size(); ++i) name_both("x", "", schema.input_port(i), i, call.inputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) name_both("y", "", schema.output_port(i), i, outputs[i]);
  for (size_t i = 0; i < outputs.size(); ++i) name_both("dy", "d", schema.output_port(i), i, output_gradients[i]);
  Gradients result;
  for (uint32_t n = 0; n < op.gradient_node_count; ++n) {
    const heddle_gradient_node& node = *op.gradient_nodes[n];
    OperatorCall emitted;
    emitted.domain = node.domain;
    emitted.type = node.operator_name;
    emitted.output_count = node.output_count;
    emitted.host = call.host;
    const OperatorSchema* target = registry.find_operator(emitted.domain, emitted.type);
    if (!target) {
      result.wrong = fmt::format("its gradient emits {}, which no loaded plugin has", display_name(node.domain, node.operator_name));
      return result;
    }
    for (const Attribute& a : call.attributes)
      if (target->attribute_index(a.name) >= 0) emitted.attributes.push_back(a);
    for (uint32_t i = 0; i < node.input_count; ++i) {
      const auto it = values.find(node.inputs[i]);
      if (it == values.end() && !is_absent(schema, call, node.inputs[i])) {
        result.wrong = fmt::format("its gradient reads {}, which is no value of the fragment", quoted(node.inputs[i]));
        return result;
      }
      emitted.inputs.push_back(it == values.end() ? nullptr : it->second);
    }
    auto ran = run_operator(registry, emitted);
    if (!ran.ok()) {
      result.wrong = fmt::format("its gradient: {}", ran.status().text());
      return result;
    }
    for (uint32_t i = 0; i < node.output_count && i < ran->size(); ++i) {
      if (!is_read(schema, call, n, node.outputs[i])) {
        result.wrong =
            fmt::format("its gradient writes {}, which is no gradient of an input and which no later node reads", quoted(node.outputs[i]));
        return result;
      }
      values[node.outputs[i]] = (*ran)[i];
    }
  }
  for (size_t i = 0; i < call.inputs.size(); ++i) {
    auto it = values.find(fmt::format("dx{}", i));
    if (it == values.end() && i < op.input_count) it = values.find(std::string("d") + op.inputs[i]->name);
    result.of_inputs.push_back(it == values.end() ? nullptr : it->second);
  }
  return result;
}

// ---------------------------------------------------------------- the callback

// A builder that runs emitted operators at once: handles stand for values.
struct BuilderCall : HostCall {
  heddle_gradient_builder abi = {};
  const RegistrySnapshot* registry = nullptr;
  const OperatorCall* forward = nullptr;
  bool is_refused = false;
  Blobs values;  // by handle - 1
  struct Rows {
    std::shared_ptr<const Blob> indices, values;
  };
  std::map<uint32_t, Rows> rows;  // by input, for those that were given by rows

  heddle_value_handle add(const std::shared_ptr<const Blob>& value) {
    if (!value) return 0;
    values.push_back(value);
    return values.size();
  }
};

BuilderCall& builder_of(const heddle_gradient_builder& abi) {
  return *static_cast<BuilderCall*>(const_cast<heddle_call*>(abi.call));
}

heddle_status emit(const heddle_gradient_builder* abi, const char* domain, const char* name, const heddle_value_handle* inputs,
                   uint32_t input_count, heddle_value_handle* outputs, uint32_t output_count, const heddle_attribute* const* attributes,
                   uint32_t attribute_count) {
  BuilderCall& builder = builder_of(*abi);
  // The first refusal tells what is wrong: nodes emitted on a value that was not made are refused too.
  const auto refuse = [&](const std::string& text) {
    if (!builder.is_refused) builder.set_error(HEDDLE_ERROR_INVALID, text);
    builder.is_refused = true;
    return HEDDLE_ERROR_INVALID;
  };
  OperatorCall call;
  call.domain = domain ? domain : "";
  call.type = name ? name : "";
  call.output_count = output_count;
  call.host = builder.forward->host;
  if ((input_count > 0 && !inputs) || (output_count > 0 && !outputs) || (attribute_count > 0 && !attributes))
    return refuse(fmt::format("emits {} with inputs, outputs or attributes that are null", quoted(call.type)));
  for (uint32_t i = 0; i < input_count; ++i) {
    if (inputs[i] > builder.values.size()) return refuse(fmt::format("emits {} on a handle that stands for no value", call.type));
    call.inputs.push_back(inputs[i] == 0 ? nullptr : builder.values[inputs[i] - 1]);
  }
  auto given = attributes_from_abi(attributes, attribute_count);
  if (!given.ok()) return refuse(fmt::format("emits {} with {}", call.type, given.status().diagnostic().message));
  call.attributes = std::move(*given);
  auto ran = run_operator(*builder.registry, call);
  if (!ran.ok()) return refuse(ran.status().text());
  for (uint32_t i = 0; i < output_count; ++i) outputs[i] = builder.add((*ran)[i]);
  return HEDDLE_OK;
}

heddle_status constant(const heddle_gradient_builder* abi, const heddle_type* type, const void* data, heddle_value_handle* value) {
  BuilderCall& builder = builder_of(*abi);
  const auto refuse = [&](const std::string& text) {
    if (!builder.is_refused) builder.set_error(HEDDLE_ERROR_INVALID, text);
    builder.is_refused = true;
    return HEDDLE_ERROR_INVALID;
  };
  if (!type || !value) return refuse(fmt::format("adds a constant {} is null", type ? "whose handle" : "whose type"));
  const auto shape = shape_from_abi(*type);
  if (!shape.ok()) return refuse(fmt::format("adds {}", shape.status().diagnostic().message));
  if (!data && shape->element_count() > 0) return refuse(fmt::format("adds a constant of shape {} without data", shape->text()));
  *value = builder.add(Blob::copy_of(static_cast<DType>(type->dtype), *shape, data));
  return HEDDLE_OK;
}

heddle_status sparse(const heddle_gradient_builder* abi, uint32_t input, heddle_value_handle indices, heddle_value_handle values,
                     uint32_t) {
  BuilderCall& builder = builder_of(*abi);
  if (input < abi->input_count && indices > 0 && values > 0 && indices <= builder.values.size() && values <= builder.values.size()) {
    builder.rows[input] = {builder.values[indices - 1], builder.values[values - 1]};
    return HEDDLE_OK;
  }
  builder.set_error(HEDDLE_ERROR_INVALID, fmt::format("gives input {} rows by handles that stand for no value", input));
  return HEDDLE_ERROR_INVALID;
}

// The forward operator ran without this output: it runs again, with it.
heddle_status output(const heddle_gradient_builder* abi, uint32_t index, heddle_value_handle* value) {
  BuilderCall& builder = builder_of(*abi);
  if (!value) {
    if (!builder.is_refused)
      builder.set_error(HEDDLE_ERROR_INVALID, fmt::format("asks for output {} and has no place for its handle", index));
    builder.is_refused = true;
    return HEDDLE_ERROR_INVALID;
  }
  if (index < abi->output_count && abi->outputs[index] != 0) return *value = abi->outputs[index], HEDDLE_OK;
  OperatorCall again = *builder.forward;
  again.output_count = std::max<size_t>(again.output_count, index + 1);
  auto ran = run_operator(*builder.registry, again);
  if (!ran.ok()) {
    builder.set_error(HEDDLE_ERROR_INVALID, ran.status().text());
    return HEDDLE_ERROR_INVALID;
  }
  *value = builder.add((*ran)[index]);
  return HEDDLE_OK;
}

template <class T>
void add_row(std::byte* sums, const std::byte* row, int64_t length) {
  for (int64_t i = 0; i < length; ++i) reinterpret_cast<T*>(sums)[i] += reinterpret_cast<const T*>(row)[i];
}

// The dense gradient of `table`; null: the rows do not fit it.
std::shared_ptr<const Blob> sum_of_rows(const BuilderCall::Rows& rows, const Blob& table) {
  const Blob &indices = *rows.indices, &values = *rows.values;
  const bool wide = table.dtype == DType::f64;
  if ((!wide && table.dtype != DType::f32) || values.dtype != table.dtype || table.shape.rank() == 0 ||
      (indices.dtype != DType::i64 && indices.dtype != DType::i32) || indices.shape.rank() != 1)
    return nullptr;
  const int64_t bound = table.shape[0], count = indices.shape.element_count();
  const int64_t length = bound == 0 ? 0 : table.shape.element_count() / bound;
  if (values.shape.element_count() != count * length) return nullptr;
  std::byte* data = nullptr;
  auto dense = Blob::allocate(table.dtype, table.shape, &data);
  const int64_t row_bytes = length * byte_width(table.dtype);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at =
        indices.dtype == DType::i64 ? reinterpret_cast<const int64_t*>(indices.data)[i] : reinterpret_cast<const int32_t*>(indices.data)[i];
    if (at < 0) at += bound;  // from the end
    if (at < 0 || at >= bound) return nullptr;
    (wide ? add_row<double> : add_row<float>)(data + at * row_bytes, values.data + i * row_bytes, length);
  }
  return dense;
}

heddle_type type_of(const Blob& blob) {
  heddle_type type = {};
  type.struct_size = sizeof(type);
  type.dtype = static_cast<heddle_dtype>(blob.dtype);
  type.rank = blob.shape.rank();
  type.bounded_axis = -1;
  for (int d = 0; d < type.rank; ++d) type.dims[d] = blob.shape[d];
  return type;
}

// The types of values, null where there is none; they are stored in `types`.
std::vector<const heddle_type*> types_of(const Blobs& blobs, std::vector<heddle_type>& types) {
  types.resize(blobs.size());
  std::vector<const heddle_type*> pointers(blobs.size(), nullptr);
  for (size_t i = 0; i < blobs.size(); ++i)
    if (blobs[i]) types[i] = type_of(*blobs[i]), pointers[i] = &types[i];
  return pointers;
}

// Reads what the callback answered: a value for each input that has a gradient. `inputs`: those of the call, null where it leaves one out.
Gradients read_gradients(const BuilderCall& builder, heddle_status status, const std::vector<heddle_value_handle>& dx,
                         const Blobs& inputs) {
  Gradients result;
  if (status == HEDDLE_ERROR_UNSUPPORTED && !builder.is_refused) {
    result.refused = true;
    return result;
  }
  if (status != HEDDLE_OK) {
    result.wrong = fmt::format("its gradient: {}", plugin_error(Code::kernel_failed, status, builder.error).diagnostic().message);
    return result;
  }
  for (size_t i = 0; i < dx.size(); ++i) {
    if (dx[i] > builder.values.size()) {
      result.wrong = fmt::format("its gradient of input {} is a handle that stands for no value", i);
      return result;
    }
    result.of_inputs.push_back(dx[i] == 0 ? nullptr : builder.values[dx[i] - 1]);
  }
  for (const auto& [input, rows] : builder.rows) {
    if (inputs[input]) result.of_inputs[input] = sum_of_rows(rows, *inputs[input]);
    if (result.of_inputs[input]) continue;
    result.wrong = fmt::format("its gradient of input {} is no rows of it", input);
    return result;
  }
  result.of_inputs.resize(builder.forward->inputs.size());  // ports that the call leaves out have no gradient to compare
  return result;
}

Gradients run_callback(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs,
                       const Blobs& output_gradients) {
  BuilderCall builder;
  builder.registry = &registry;
  builder.forward = &call;
  const AttributeTable table(schema, call.attributes);
  // One handle for each port, though the call may leave out the last ones.
  std::vector<heddle_value_handle> x, y, dy, dx(std::max<size_t>(call.inputs.size(), schema.op->input_count), 0);
  for (const auto& value : call.inputs) x.push_back(builder.add(value));
  x.resize(dx.size(), 0);
  for (const auto& value : outputs) y.push_back(builder.add(value));
  for (const auto& value : output_gradients) dy.push_back(builder.add(value));
  heddle_gradient_builder& abi = builder.abi;
  abi.struct_size = sizeof(abi);
  abi.input_count = static_cast<uint32_t>(x.size());
  abi.output_count = static_cast<uint32_t>(y.size());
  abi.attribute_count = table.size();
  abi.host = host_table();
  abi.call = &builder;
  abi.inputs = x.data();
  abi.outputs = y.data();
  abi.output_gradients = dy.data();
  abi.input_gradients = dx.data();
  abi.attributes = table.data();
  abi.emit = emit;
  abi.op = schema.op;
  std::vector<heddle_type> input_types, output_types;
  Blobs inputs = call.inputs;
  inputs.resize(dx.size());
  const std::vector<const heddle_type*> types_in = types_of(inputs, input_types), types_out = types_of(outputs, output_types);
  const std::vector<uint8_t> wanted(dx.size(), 1);
  abi.input_types = types_in.data();
  abi.output_types = types_out.data();
  abi.wanted = wanted.data();
  abi.constant = constant;
  abi.sparse = sparse;
  abi.output = output;
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = schema.op->gradient(&abi);
  } catch (...) {
    builder.error.text = "threw an exception across the plugin boundary";
  }
  return read_gradients(builder, status, dx, inputs);
}

}  // namespace

bool declares_gradient(const OperatorSchema& schema) {
  return schema.op->gradient_node_count > 0 || schema.op->gradient;
}

Gradients run_gradient(const RegistrySnapshot& registry, const OperatorSchema& schema, const OperatorCall& call, const Blobs& outputs,
                       const Blobs& output_gradients) {
  return schema.op->gradient ? run_callback(registry, schema, call, outputs, output_gradients)
                             : run_nodes(registry, schema, call, outputs, output_gradients);
}

}  // namespace heddle::tool
