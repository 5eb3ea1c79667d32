#include "plugin/infer_operator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "base/text/text.h"

namespace heddle {
namespace {

std::string dtype_set_text(heddle_dtype_set set) {
  std::vector<std::string> names;
  for (int d = 1; d < HEDDLE_DTYPE_COUNT; ++d)
    if (set & HEDDLE_DTYPE_BIT(d)) names.emplace_back(to_string(static_cast<DType>(d)));
  return names.size() + 1 == HEDDLE_DTYPE_COUNT ? "any dtype" : join(names, ", ");
}

// The dtypes that the inputs determine for the schema's type variables; operators have few.
class TypeVariables {
 public:
  DType find(const char* variable) const {
    for (size_t i = 0; i < count_; ++i)
      if (std::strcmp(bound_[i].variable, variable) == 0) return bound_[i].dtype;
    return DType::none;
  }
  void bind(const char* variable, DType dtype) {
    if (count_ < bound_.size()) bound_[count_++] = {variable, dtype};
  }

 private:
  struct Bound {
    const char* variable;
    DType dtype;
  };
  std::array<Bound, 8> bound_;
  size_t count_ = 0;
};

Status check_inputs(const OperatorSchema& schema, std::span<const heddle_tensor* const> inputs, TypeVariables& variables) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const heddle_port* port = schema.input_port(i);
    if (!port) return {Code::arity_mismatch, fmt::format("has {} inputs, takes at most {}", inputs.size(), schema.op->input_count)};
    if (!inputs[i]) {
      if (!(port->flags & HEDDLE_PORT_OPTIONAL)) return {Code::arity_mismatch, fmt::format("input {} is missing", quoted(port->name))};
      continue;
    }
    const DType dtype = static_cast<DType>(inputs[i]->dtype);
    if (!(port->dtypes & HEDDLE_DTYPE_BIT(inputs[i]->dtype)))
      return {Code::dtype_mismatch,
              fmt::format("input {} is {}, must be one of {}", quoted(port->name), to_string(dtype), dtype_set_text(port->dtypes)),
              "insert a Cast"};
    // The first input of a type variable decides it; later ones must agree.
    if (!port->type_variable || (port->flags & HEDDLE_PORT_HETEROGENEOUS)) continue;
    const DType bound = variables.find(port->type_variable);
    if (bound == DType::none)
      variables.bind(port->type_variable, dtype);
    else if (bound != dtype)
      return {Code::dtype_mismatch,
              fmt::format("input {} is {} but the inputs before it are {}", quoted(port->name), to_string(dtype), to_string(bound)),
              "insert a Cast"};
  }
  if (inputs.size() < schema.required_inputs)
    return {Code::arity_mismatch, fmt::format("input {} is missing", quoted(schema.op->inputs[inputs.size()]->name))};
  return {};
}

DType output_dtype(const heddle_port& port, const TypeVariables& variables) {
  const DType bound = port.type_variable ? variables.find(port.type_variable) : DType::none;
  return bound != DType::none ? bound : static_cast<DType>(port.default_dtype);
}

}  // namespace

heddle_type to_abi(const TensorType& type) {
  heddle_type t = {};
  t.struct_size = sizeof(t);
  t.dtype = static_cast<heddle_dtype>(type.dtype);
  t.rank = type.shape.rank();
  t.bounded_axis = type.bounded_axis;
  if (type.dynamic) t.flags |= HEDDLE_TYPE_DYNAMIC;
  for (int i = 0; i < type.shape.rank(); ++i) t.dims[i] = type.shape[i];
  return t;
}

heddle_type subnet_output_type(const TensorType& type) {
  TensorType told = type;
  told.dynamic = type.dynamic || type.follows_bounded;
  if (told.dynamic) told.bounded_axis = -1;
  for (int i = 0; told.dynamic && i < told.shape.rank(); ++i) told.shape[i] = HEDDLE_DYNAMIC_DIM;
  return to_abi(told);
}

heddle_type subnet_output_type(const TypedNet& subnet, size_t i) {
  const ValueId output = subnet.net.outputs[i];
  heddle_type type = subnet_output_type(subnet.type(output));
  const auto& known = subnet.known[output.index];
  if (known && known->dtype == DType::boolean && known->bytes == 1 && known->data[0] != std::byte{0}) type.flags |= HEDDLE_TYPE_TRUE;
  return type;
}

Status from_abi(const heddle_type& type, TensorType* out) {
  if (type.rank < 0 || type.rank > max_rank)
    return {Code::shape_mismatch, fmt::format("an output has rank {}, at most {} is supported", type.rank, max_rank)};
  if (type.dtype <= HEDDLE_DTYPE_NONE || type.dtype >= HEDDLE_DTYPE_COUNT)
    return {Code::dtype_mismatch, "nothing decides the dtype of an output", "the operator's infer function must set it"};
  out->dtype = static_cast<DType>(type.dtype);
  out->shape = Shape(type.dims, type.rank);
  out->bounded_axis = type.bounded_axis;
  out->dynamic = (type.flags & HEDDLE_TYPE_DYNAMIC) != 0;
  if (type.bounded_axis >= type.rank) return {Code::shape_mismatch, "an output is bounded along an axis that it does not have"};
  int64_t bytes = 0;
  if (!out->dynamic && !checked_byte_size(out->dtype, out->shape, &bytes))
    return {Code::shape_mismatch,
            fmt::format("an output would have shape {}, which is negative or does not fit in memory", out->shape.text())};
  return {};
}

namespace {

heddle_infer_context infer_context(const OperatorSchema& schema, const AttributeTable& attributes,
                                   std::span<const heddle_tensor* const> inputs, std::span<heddle_type* const> outputs) {
  heddle_infer_context context = {};
  context.struct_size = sizeof(context);
  context.input_count = static_cast<uint32_t>(inputs.size());
  context.output_count = static_cast<uint32_t>(outputs.size());
  context.attribute_count = attributes.size();
  context.inputs = inputs.data();
  context.outputs = outputs.data();
  context.attributes = attributes.data();
  context.op = schema.op;
  return context;
}

// Not checked: a dtype that an attribute must decide, or a size that does not fit in memory.
bool makes_sense(const heddle_type& type) {
  if (type.rank < 0 || type.rank > max_rank || type.bounded_axis >= type.rank) return false;
  if (type.dtype < HEDDLE_DTYPE_NONE || type.dtype >= HEDDLE_DTYPE_COUNT) return false;
  return (type.flags & HEDDLE_TYPE_DYNAMIC) || std::all_of(type.dims, type.dims + type.rank, [](int64_t dim) { return dim >= 0; });
}

}  // namespace

Status infer_dtypes(const OperatorSchema& schema, std::span<const heddle_tensor* const> inputs, std::span<TensorType> outputs) {
  TypeVariables variables;
  HEDDLE_CHECK(check_inputs(schema, inputs, variables));
  for (size_t i = 0; i < outputs.size(); ++i)
    if (const heddle_port* port = schema.output_port(i)) outputs[i].dtype = output_dtype(*port, variables);
  return {};
}

Status infer_operator(const OperatorSchema& schema, const AttributeTable& attributes, std::span<const heddle_tensor* const> inputs,
                      std::span<const char> wanted, std::span<TensorType> outputs, CallServices* services, CallEnd* end) {
  if (end) *end = {OperatorPhase::infer, HEDDLE_OK};
  TypeVariables variables;
  HEDDLE_CHECK(check_inputs(schema, inputs, variables));
  const DeclaredDims& declared = schema.declared_dims;
  DeclaredDims::Bound bound;
  if (!declared.empty()) HEDDLE_CHECK(declared.match(inputs, &bound));
  // Called for each node of nets with a million nodes, and in runs for late steps: up to eight outputs take no allocation.
  constexpr size_t few = 8;
  std::array<heddle_type, few> few_types;
  std::array<heddle_type*, few> few_pointers;
  std::vector<heddle_type> many_types;
  std::vector<heddle_type*> many_pointers;
  const size_t count = outputs.size();
  if (count > few) {
    many_types.resize(count);
    many_pointers.resize(count);
  }
  heddle_type* types = count > few ? many_types.data() : few_types.data();
  heddle_type** pointers = count > few ? many_pointers.data() : few_pointers.data();
  for (size_t i = 0; i < count; ++i) {
    const heddle_port* port = schema.output_port(i);
    if (!port) return {Code::arity_mismatch, fmt::format("has {} outputs, gives at most {}", count, schema.op->output_count)};
    types[i] = {};
    types[i].struct_size = sizeof(heddle_type);
    types[i].dtype = static_cast<heddle_dtype>(output_dtype(*port, variables));
    types[i].bounded_axis = -1;
    if (!declared.empty() && wanted[i]) HEDDLE_CHECK(declared.follow(i, bound, &types[i]));
    // An output that the net leaves out is null here, as it will be for the kernel.
    pointers[i] = wanted[i] ? &types[i] : nullptr;
  }
  InferCall call(infer_context(schema, attributes, inputs, {pointers, count}), services);
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = schema.op->infer(&call.abi);
  } catch (...) {
    call.error.text = "infer threw an exception across the plugin boundary";
  }
  if (end) end->answer = status != HEDDLE_OK && call.error.misused ? HEDDLE_ERROR_INTERNAL : status;
  if (status != HEDDLE_OK) return plugin_error(Code::shape_mismatch, status, call.error);
  for (size_t i = 0; i < count; ++i) {
    if (!wanted[i]) continue;
    // Success with an impossible type is a mistake of the operator, not of the net: `end` distinguishes them.
    if (end && !makes_sense(types[i])) end->answer = HEDDLE_ERROR_INTERNAL;
    HEDDLE_CHECK(from_abi(types[i], &outputs[i]));
    Status other = declared.check_output(i, bound, outputs[i]);
    if (end && !other.ok()) end->answer = HEDDLE_ERROR_INTERNAL;
    HEDDLE_CHECK(std::move(other));
  }
  return {};
}

Status ask_subnets(const OperatorSchema& schema, const AttributeTable& attributes, std::span<const heddle_tensor* const> inputs,
                   std::span<const char> wanted, CallServices& services, CallEnd* end) {
  std::vector<heddle_type> types(wanted.size());
  std::vector<heddle_type*> pointers;
  for (size_t i = 0; i < types.size(); ++i) {
    types[i].struct_size = sizeof(heddle_type);
    types[i].bounded_axis = -1;
    pointers.push_back(wanted[i] ? &types[i] : nullptr);
  }
  InferCall call(infer_context(schema, attributes, inputs, pointers), &services);
  heddle_status status = HEDDLE_ERROR_INTERNAL;
  try {
    status = schema.op->subnets(&call.abi);
  } catch (...) {
    call.error.text = "subnets threw an exception across the plugin boundary";
  }
  if (end) *end = {OperatorPhase::infer, status != HEDDLE_OK && call.error.misused ? HEDDLE_ERROR_INTERNAL : status};
  return status == HEDDLE_OK ? Status() : plugin_error(Code::subnet_mismatch, status, call.error);
}

Status check_asked_output(bool runs_subnets, uint32_t output, const TensorType& type, const int64_t* dims, int32_t rank) {
  const auto wrong = [&](const std::string& what) {
    return Status(Code::kernel_failed, fmt::format("the kernel asks for memory for output {}{}", output, what),
                  "in run, ask only for dynamic outputs that the step has, with extents that agree with what was inferred");
  };
  if (!type.dynamic) return wrong(", whose extents are known before it runs");
  if (rank < 0 || rank > max_rank) return wrong(fmt::format(" with rank {}, where 0 to {} are possible", rank, max_rank));
  if (rank > 0 && !dims) return wrong(fmt::format(" with rank {} and no dims", rank));
  const Shape asked(dims, rank);
  if (std::any_of(dims, dims + rank, [](int64_t dim) { return dim < 0; })) return wrong(fmt::format(" of shape {}", asked.text()));
  if (runs_subnets) return {};
  bool fits = rank == type.shape.rank();
  for (int i = 0; fits && i < rank; ++i) fits = type.shape[i] < 0 || type.shape[i] == asked[i];
  return fits ? Status() : wrong(fmt::format(" of shape {}, where {} was inferred", asked.text(), type.shape.text()));
}

}  // namespace heddle
