#include "plugin/check_tables.h"

#include <fmt/format.h>

#include <cstring>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/reserved_dtypes.h"
#include "base/text/text.h"
#include "heddle/device_plugin.h"
#include "heddle/expression.h"
#include "plugin/declared_dims.h"

namespace heddle {
namespace {

constexpr uint32_t max_table = 100'000;   // operators or kernels of one plugin
constexpr uint32_t max_list = 1024;       // ports, attributes, gradient operators of one operator
constexpr uint64_t max_default = 65'536;  // elements of a default value
constexpr size_t max_name = 256;

Status bad(const std::string& what, const std::string& wrong) {
  return {Code::plugin_invalid, fmt::format("{}: {}", what, wrong), "mend the plugin's declaration"};
}

// Checks a table of `count` pointers, none of which may be null or point to a struct that is too short.
template <class T>
Status check_pointers(const std::string& what, const char* table_name, const T* const* table, uint32_t count, uint32_t limit) {
  const std::string name = fmt::format("{} table", table_name);
  if (count > limit) return bad(what, fmt::format("{} claims {} entries, the limit is {}", name, count, limit));
  if (count > 0 && !table) return bad(what, fmt::format("{} is null", name));
  for (uint32_t i = 0; i < count; ++i) {
    if (!table[i]) return bad(what, fmt::format("entry {} of the {} is null", i, name));
    if (table[i]->struct_size < sizeof(T))
      return bad(what, fmt::format("entry {} of the {} has struct_size {}, this ABI's is {}", i, name, table[i]->struct_size, sizeof(T)));
  }
  return {};
}

// Names are printed, put into files and compared: printable ASCII without quotes, not empty, not endless.
Status check_name(const std::string& what, const char* kind, const char* name) {
  if (!name || !*name) return bad(what, fmt::format("has no {}", kind));
  const size_t length = strnlen(name, max_name + 1);
  if (length > max_name) return bad(what, fmt::format("{} is longer than {} bytes", kind, max_name));
  for (const char c : std::string_view(name, length))
    if (c <= ' ' || c >= 0x7f || c == '"' || c == '\\')
      return bad(what, fmt::format("{} {} has characters other than printable ASCII without spaces and quotes", kind,
                                   quoted(std::string_view(name, length))));
  return {};
}

std::string shown_name(const char* name) {
  return quoted(name ? std::string_view(name, strnlen(name, max_name)) : std::string_view("(null)"));
}

// The end of a sentence about an unsupported dtype.
std::string unsupported_dtype(heddle_dtype dtype) {
  const std::string_view reserved = reserved_dtype(dtype);
  if (reserved.empty()) return fmt::format("dtype {}, which does not exist", dtype);
  return fmt::format("dtype {}, whose number is reserved: this version has no operators for it", reserved);
}

Status check_ports(const std::string& what, const heddle_port* const* ports, uint32_t count, bool outputs,
                   std::span<const heddle_port* const> inputs) {
  const uint32_t input_count = outputs ? static_cast<uint32_t>(inputs.size()) : count;
  HEDDLE_CHECK(check_pointers(what, outputs ? "output" : "input", ports, count, max_list));
  std::set<std::string> names;
  bool optional_seen = false;
  for (uint32_t i = 0; i < count; ++i) {
    const heddle_port& p = *ports[i];
    HEDDLE_CHECK(check_name(what, "port name", p.name));
    const std::string port = fmt::format("port {}", quoted(p.name));
    if (!names.insert(p.name).second) return bad(what, fmt::format("{} is declared twice", port));
    if ((p.flags & HEDDLE_PORT_VARIADIC) && i + 1 != count) return bad(what, fmt::format("{} is variadic but not the last", port));
    if (!outputs && optional_seen && !(p.flags & HEDDLE_PORT_OPTIONAL))
      return bad(what, fmt::format("{} is required but follows an optional one", port));
    optional_seen = optional_seen || (p.flags & HEDDLE_PORT_OPTIONAL);
    if (p.dtypes == 0) return bad(what, fmt::format("{} allows no dtype", port));
    for (heddle_dtype d = HEDDLE_DTYPE_COUNT; d < 32; ++d)
      if (p.dtypes & HEDDLE_DTYPE_BIT(d)) return bad(what, fmt::format("{} allows {}", port, unsupported_dtype(d)));
    const auto names_input = [&](int32_t input) { return input >= -1 && input < static_cast<int32_t>(input_count); };
    if (!names_input(p.updates) || !(names_input(p.may_alias) || p.may_alias == HEDDLE_ALIAS_ANY) || !names_input(p.index_bound_port))
      return bad(what, fmt::format("{} names an input that does not exist", port));
    for (const int32_t named : {p.updates, p.may_alias})
      if (outputs && (p.flags & HEDDLE_PORT_VARIADIC) && named >= 0 && !(inputs[static_cast<size_t>(named)]->flags & HEDDLE_PORT_VARIADIC))
        return bad(what,
                   fmt::format("{} is variadic and takes the bytes of one input, {}: its k-th value goes with the k-th of a variadic one",
                               port, quoted(inputs[static_cast<size_t>(named)]->name)));
    if ((p.flags & HEDDLE_PORT_MAY_UPDATE) && (!outputs || p.updates >= 0 || p.may_alias != -1))
      return bad(what, fmt::format("{} may update what the net says, and is an input or names one itself", port));
    if (p.default_dtype < 0 || p.default_dtype >= HEDDLE_DTYPE_COUNT)
      return bad(what, fmt::format("{} has an unknown default dtype", port));
  }
  return {};
}

Status check_default(const std::string& what, const heddle_attribute_schema& schema) {
  const heddle_attribute* value = schema.default_value;
  if (!value) return {};
  const std::string shown = fmt::format("default of attribute {}", quoted(schema.name));
  if (value->struct_size < sizeof(heddle_attribute)) return bad(what, fmt::format("{} is too short", shown));
  if (value->type != schema.type) return bad(what, fmt::format("{} has another type", shown));
  if (value->count > max_default) return bad(what, fmt::format("{} claims {} elements", shown, value->count));
  const bool lists = (value->type == HEDDLE_ATTRIBUTE_INTS && value->count > 0 && !value->ints) ||
                     (value->type == HEDDLE_ATTRIBUTE_FLOATS && value->count > 0 && !value->floats) ||
                     (value->type == HEDDLE_ATTRIBUTE_STRINGS && value->count > 0 && !value->strings);
  if (lists || (value->type == HEDDLE_ATTRIBUTE_STRING && !value->s) || (value->type == HEDDLE_ATTRIBUTE_TENSOR && !value->tensor))
    return bad(what, fmt::format("{} has no content", shown));
  if (value->type == HEDDLE_ATTRIBUTE_SUBNET) return bad(what, fmt::format("{} is a subnet, which has no default", shown));
  return {};
}

Status check_subnet_ports(const std::string& what, const heddle_operator& op, const heddle_subnet_ports* ports) {
  if (!ports) return bad(what, "does not say how its ports go with the operator's (heddle_attribute_schema::ports)");
  if (ports->struct_size < sizeof(*ports))
    return bad(what, fmt::format("its ports have struct_size {}, this ABI's is {}", ports->struct_size, sizeof(*ports)));
  if (ports->own_inputs > max_list || ports->own_outputs > max_list) return bad(what, "has too many ports of its own");
  if (ports->first_input > op.input_count || ports->first_output > op.output_count)
    return bad(what, "takes inputs or outputs of the operator that do not exist");
  return {};
}

Status check_attributes(const std::string& what, const heddle_operator& op) {
  HEDDLE_CHECK(check_pointers(what, "attribute", op.attributes, op.attribute_count, max_list));
  std::set<std::string> names;
  bool subnets = false;
  for (uint32_t i = 0; i < op.attribute_count; ++i) {
    const heddle_attribute_schema& a = *op.attributes[i];
    HEDDLE_CHECK(check_name(what, "attribute name", a.name));
    if (!names.insert(a.name).second) return bad(what, fmt::format("attribute {} is declared twice", quoted(a.name)));
    if (a.type <= HEDDLE_ATTRIBUTE_NONE || a.type > HEDDLE_ATTRIBUTE_SUBNET)
      return bad(what, fmt::format("attribute {} has no known type", quoted(a.name)));
    HEDDLE_CHECK(check_default(what, a));
    const bool subnet = a.type == HEDDLE_ATTRIBUTE_SUBNET;
    subnets = subnets || subnet;
    if (!subnet && a.ports) return bad(what, fmt::format("attribute {} has ports, and is no subnet", quoted(a.name)));
    if (subnet) HEDDLE_CHECK(check_subnet_ports(fmt::format("{}: subnet {}", what, quoted(a.name)), op, a.ports));
  }
  if (subnets && !op.subnets) return bad(what, "has a subnet, and no function that says what it is run with (heddle_operator::subnets)");
  if (!subnets && op.subnets) return bad(what, "says what its subnets are run with, and has none");
  return {};
}

// A net names its communicators in attributes, so that a run knows before it begins which ones it uses.
Status check_collective(const std::string& what, const heddle_operator& op) {
  if (!(op.traits & HEDDLE_TRAIT_COLLECTIVE)) return {};
  for (uint32_t i = 0; i < op.attribute_count; ++i) {
    const heddle_attribute_schema& a = *op.attributes[i];
    if (std::string_view(a.name) == "communicator" && a.type == HEDDLE_ATTRIBUTE_STRING && a.required) return {};
  }
  return bad(what, "is collective, and has no required text attribute \"communicator\"");
}

// Refuses a gradient of an operator whose ports no gradient can pass.
Status check_differentiable(const std::string& what, const heddle_operator& op) {
  if (op.output_count == 0 || (op.gradient_node_count == 0 && !op.gradient)) return {};
  for (uint32_t i = 0; i < op.output_count; ++i)
    if (!(op.outputs[i]->flags & HEDDLE_PORT_NOT_DIFFERENTIABLE)) return {};
  return bad(what,
             fmt::format("has a gradient, and none of its outputs is differentiable, as is said of port {}", quoted(op.outputs[0]->name)));
}

Status check_gradients(const std::string& what, const heddle_operator& op) {
  HEDDLE_CHECK(check_pointers(what, "gradient", op.gradient_nodes, op.gradient_node_count, max_list));
  for (uint32_t i = 0; i < op.gradient_node_count; ++i) {
    const heddle_gradient_node& node = *op.gradient_nodes[i];
    const std::string shown = fmt::format("gradient operator {}", i);
    HEDDLE_CHECK(check_name(what, "gradient operator name", node.operator_name));
    if (node.input_count > max_list || node.output_count > max_list || (node.input_count > 0 && !node.inputs) ||
        (node.output_count > 0 && !node.outputs))
      return bad(what, fmt::format("{} has damaged roles", shown));
    for (uint32_t k = 0; k < node.input_count; ++k)
      if (!node.inputs[k]) return bad(what, fmt::format("{} has a null role", shown));
    for (uint32_t k = 0; k < node.output_count; ++k)
      if (!node.outputs[k]) return bad(what, fmt::format("{} has a null role", shown));
  }
  return {};
}

Status check_pointwise(const std::string& what, const heddle_operator& op) {
  if (!op.pointwise) return {};
  expression::Constants constants;
  for (uint32_t i = 0; i < op.attribute_count; ++i) {
    const std::string name = op.attributes[i]->name;
    constants.emplace_back(name, 0.0);
    if (op.attributes[i]->type != HEDDLE_ATTRIBUTE_STRING) continue;
    for (const std::string& word : expression::mentioned(op.pointwise, name + "_is_")) constants.emplace_back(name + "_is_" + word, 0.0);
  }
  for (uint32_t i = 0; i < op.input_count; ++i) constants.emplace_back(std::string("has_") + op.inputs[i]->name, 1.0);
  expression::Program program;
  std::string error;
  if (!expression::parse(op.pointwise, constants, program, error)) return bad(what, fmt::format("pointwise expression: {}", error));
  for (const std::string& name : program.inputs) {
    bool found = false;
    for (uint32_t i = 0; i < op.input_count; ++i) found = found || name == op.inputs[i]->name;
    if (!found) return bad(what, fmt::format("pointwise expression names {}, which is neither an input nor an attribute", quoted(name)));
  }
  return {};
}

Status check_examples(const std::string& what, const heddle_example* const* examples, uint32_t count) {
  HEDDLE_CHECK(check_pointers(what, "example", examples, count, max_list));
  for (uint32_t i = 0; i < count; ++i)
    if (!examples[i]->text) return bad(what, fmt::format("example {} has no text", i));
  return {};
}

// The trait COMMUTATIVE concerns two inputs, which must be values of one kind.
Status check_commutative(const std::string& what, const heddle_operator& op) {
  if (!(op.traits & HEDDLE_TRAIT_COMMUTATIVE)) return {};
  if (op.input_count == 1 && (op.inputs[0]->flags & HEDDLE_PORT_VARIADIC) && !(op.inputs[0]->flags & HEDDLE_PORT_HETEROGENEOUS)) return {};
  const auto variable = [&](uint32_t port) {
    return std::string_view(op.inputs[port]->type_variable ? op.inputs[port]->type_variable : "");
  };
  if (op.input_count == 2 && op.inputs[0]->flags == 0 && op.inputs[1]->flags == 0 && op.inputs[0]->dtypes == op.inputs[1]->dtypes &&
      variable(0) == variable(1))
    return {};
  return bad(what, "has the trait COMMUTATIVE, and not two inputs of the same dtypes, or variadic ones");
}

Status check_operator(const heddle_operator& op) {
  const std::string what = fmt::format("operator {}", shown_name(op.name));
  HEDDLE_CHECK(check_name(what, "name", op.name));
  if (op.domain && *op.domain) HEDDLE_CHECK(check_name(what, "domain", op.domain));
  if (op.version < 1) return bad(what, "version must be at least 1");
  if (!op.infer) return bad(what, "has no infer function");
  HEDDLE_CHECK(check_ports(what, op.inputs, op.input_count, false, {}));
  HEDDLE_CHECK(check_ports(what, op.outputs, op.output_count, true, {op.inputs, op.input_count}));
  std::string error;
  if (!DeclaredDims().read(op, &error)) return bad(what, error);
  HEDDLE_CHECK(check_commutative(what, op));
  HEDDLE_CHECK(check_attributes(what, op));
  HEDDLE_CHECK(check_collective(what, op));
  HEDDLE_CHECK(check_gradients(what, op));
  HEDDLE_CHECK(check_differentiable(what, op));
  HEDDLE_CHECK(check_examples(what, op.examples, op.example_count));
  return check_pointwise(what, op);
}

Status check_kernel(const heddle_kernel& k) {
  const std::string what = fmt::format("kernel of {}", shown_name(k.operator_name));
  HEDDLE_CHECK(check_name(what, "operator name", k.operator_name));
  HEDDLE_CHECK(check_name(what, "device kind", k.device_kind));
  if (k.domain && *k.domain) HEDDLE_CHECK(check_name(what, "domain", k.domain));
  if (k.name) HEDDLE_CHECK(check_name(what, "name", k.name));
  if (!k.run) return bad(what, "has no run function");
  if (k.create && !k.destroy) return bad(what, "has create but no destroy");
  const bool async = (k.flags & HEDDLE_KERNEL_ASYNC) != 0;
  if (async && std::strcmp(k.device_kind, "cpu") != 0) return bad(what, "is asynchronous on a device: enqueue on its stream instead");
  const bool resumes = (k.flags & HEDDLE_KERNEL_RESUMES) != 0;
  if (resumes && async) return bad(what, "is asynchronous and resumes: it does one of them");
  if (resumes && std::strcmp(k.device_kind, "cpu") != 0) return bad(what, "resumes on a device, and subnets run on the host");
  if ((k.flags & HEDDLE_KERNEL_MOVES_ONLY) && (async || std::strcmp(k.device_kind, "cpu") != 0))
    return bad(what, "only moves data, and is asynchronous or of a device: its kind is to be cpu");
  if (k.abort && !async) return bad(what, "has abort, and is not asynchronous");
  const bool group = (k.flags & HEDDLE_KERNEL_GROUP) != 0;
  if (group != (k.run_group != nullptr)) return bad(what, "has one of HEDDLE_KERNEL_GROUP and run_group without the other");
  if (group && (async || resumes || k.finish || (k.flags & HEDDLE_KERNEL_MOVES_ONLY)))
    return bad(what, "is launched in groups, and is asynchronous, resumes, has finish or only moves data");
  if (k.input_dtype_count > max_list || k.output_dtype_count > max_list) return bad(what, "claims too many dtype sets");
  return {};
}

Status check_device(const heddle_device_backend& d) {
  const std::string what = fmt::format("device backend {}", shown_name(d.kind));
  HEDDLE_CHECK(check_name(what, "kind", d.kind));
  const bool whole = d.count && d.open && d.close && d.description && d.memory_info && d.properties && d.allocate && d.release &&
                     d.create_stream && d.destroy_stream && d.create_event && d.destroy_event && d.enqueue && d.synchronize;
  if (!whole) return bad(what, "lacks a function");
  if (!d.allocate_host != !d.release_host) return bad(what, "has one of allocate_host and release_host without the other");
  if (!d.register_host != !d.unregister_host) return bad(what, "has one of register_host and unregister_host without the other");
  if (!d.runs_kernels_of) return {};
  HEDDLE_CHECK(check_name(what, "kind whose kernels it runs", d.runs_kernels_of));
  return std::strcmp(d.runs_kernels_of, d.kind) == 0 ? bad(what, "launches kernels of its own kind: those enqueue themselves") : Status();
}

}  // namespace

Status check_tables(const heddle_plugin& plugin) {
  HEDDLE_CHECK(check_name("the plugin", "name", plugin.name));
  const std::string what = fmt::format("plugin {}", quoted(plugin.name));
  HEDDLE_CHECK(check_pointers(what, "operator", plugin.operators, plugin.operator_count, max_table));
  HEDDLE_CHECK(check_pointers(what, "kernel", plugin.kernels, plugin.kernel_count, max_table));
  HEDDLE_CHECK(check_pointers(what, "resource", plugin.resources, plugin.resource_count, max_table));
  HEDDLE_CHECK(check_pointers(what, "rule", plugin.rules, plugin.rule_count, max_table));
  HEDDLE_CHECK(check_pointers(what, "device", plugin.devices, plugin.device_count, max_table));
  for (uint32_t i = 0; i < plugin.operator_count; ++i) HEDDLE_CHECK(check_operator(*plugin.operators[i]));
  for (uint32_t i = 0; i < plugin.kernel_count; ++i) HEDDLE_CHECK(check_kernel(*plugin.kernels[i]));
  for (uint32_t i = 0; i < plugin.device_count; ++i) HEDDLE_CHECK(check_device(*plugin.devices[i]));
  for (uint32_t i = 0; i < plugin.resource_count; ++i) {
    const heddle_resource& r = *plugin.resources[i];
    const std::string shown = fmt::format("resource {}", shown_name(r.name));
    HEDDLE_CHECK(check_name(shown, "name", r.name));
    if (r.scope < HEDDLE_SCOPE_RUNTIME || r.scope > HEDDLE_SCOPE_STREAM) return bad(shown, fmt::format("has no scope, but {}", r.scope));
    const bool of_device = r.scope == HEDDLE_SCOPE_DEVICE || r.scope == HEDDLE_SCOPE_STREAM;
    if (of_device) HEDDLE_CHECK(check_name(shown, "device kind", r.device_kind));
    if (!of_device && r.device_kind) return bad(shown, "has a device kind, and is of no device");
    if (r.abort && r.scope != HEDDLE_SCOPE_COMMUNICATOR) return bad(shown, "has abort, and is no communicator's");
    if (r.exchange && r.scope != HEDDLE_SCOPE_COMMUNICATOR) return bad(shown, "has exchange, and is no communicator's");
    if (!r.create || !r.destroy) return bad(shown, "has no create or no destroy function");
  }
  for (uint32_t i = 0; i < plugin.rule_count; ++i) {
    const heddle_rewrite_rule& r = *plugin.rules[i];
    HEDDLE_CHECK(check_name(fmt::format("rule {}", shown_name(r.name)), "name", r.name));
    if (!r.pattern || !r.replacement) return bad(fmt::format("rule {}", shown_name(r.name)), "has no pattern or no replacement");
    HEDDLE_CHECK(check_examples(fmt::format("rule {}", shown_name(r.name)), r.examples, r.example_count));
  }
  return {};
}

}  // namespace heddle
