/* A plugin whose tables are damaged in one way, chosen by HOSTILE_CASE when it is compiled: one library a case. Plain C11: what any
 * compiler might make of a mistake. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "heddle/abi.h"

enum {
  sound,
  null_table,
  short_answer,
  abi_older,
  abi_newer,
  abi_newer_minor,
  abi_other_headers,
  abi_no_hash,
  short_plugin,
  no_name,
  control_name,
  null_operators,
  null_operator,
  short_operator,
  huge_operators,
  no_operator_name,
  no_infer,
  null_ports,
  null_port,
  short_port,
  huge_ports,
  port_twice,
  alias_nowhere,
  alias_of_one,
  reserved_dtype,
  input_may_update,
  output_not_differentiable,
  commutative_of_one,
  commutative_of_several_dtypes,
  dims_without_meaning,
  dims_nobody_says,
  no_dtypes,
  null_attributes,
  default_without_content,
  default_of_other_type,
  subnet_without_ports,
  subnet_of_nobody,
  subnet_undeclared,
  ports_of_no_subnet,
  null_gradient_roles,
  bad_pointwise,
  operator_twice,
  kernel_without_operator,
  kernel_without_run,
  kernel_without_destroy,
  abort_without_async,
  async_on_device,
  async_and_resumes,
  resumes_on_device,
  group_without_function,
  group_function_without_flag,
  group_and_async,
  group_of_no_collective,
  kernel_twice,
  null_kernels,
  short_kernel,
  resource_without_create,
  resource_without_scope,
  resource_without_device,
  resource_with_device,
  resource_with_abort,
  rule_without_pattern,
  device_without_functions,
  initialize_fails,
  initialize_fails_silently
};

static heddle_status infer(const heddle_infer_context* context) {
  (void)context;
  return HEDDLE_OK;
}
static heddle_status gradient_of_none(const heddle_gradient_builder* builder) {
  (void)builder;
  return HEDDLE_OK;
}
static heddle_status run(const heddle_run_context* context, int64_t begin, int64_t end) {
  (void)context, (void)begin, (void)end;
  return HEDDLE_OK;
}
static heddle_status run_group(const heddle_run_context* const* parts, uint32_t count) {
  (void)parts, (void)count;
  return HEDDLE_OK;
}
static heddle_status create(const heddle_create_context* context, void** state) {
  (void)context, (void)state;
  return HEDDLE_OK;
}
static void stop_soon(const heddle_run_context* context) {
  (void)context;
}
static void stop_resource(void* object, const char* why) {
  (void)object, (void)why;
}
static heddle_status initialize(const heddle_host* host, const heddle_call* call) {
  static const char text[] = "the licence server said \x1b[31mno\n";
  if (HOSTILE_CASE == initialize_fails) host->set_error(call, HEDDLE_ERROR_INTERNAL, text, sizeof(text) - 1);
  if (HOSTILE_CASE == initialize_fails_silently) host->set_error(0, HEDDLE_ERROR_INTERNAL, text, sizeof(text) - 1);
  return HOSTILE_CASE >= initialize_fails ? HEDDLE_ERROR_INTERNAL : HEDDLE_OK;
}

#define PORT(port_name) \
  { sizeof(heddle_port), 0, port_name, "T", HEDDLE_DTYPE_BIT(HEDDLE_F32), HEDDLE_DTYPE_NONE, -1, -1, -1, -1, 0 }
static heddle_port x = PORT("x"), y = PORT("y");
static const heddle_port *inputs[] = {&x, &x}, *outputs[] = {&y};
static heddle_attribute default_value = {sizeof(heddle_attribute), HEDDLE_ATTRIBUTE_INTS, "axes", 0, 0, 0, 0, 0, 0, 0, 0, 0};
static heddle_attribute_schema attribute = {sizeof(heddle_attribute_schema), HEDDLE_ATTRIBUTE_INTS, 0, 0, "axes", &default_value, 0};
static heddle_subnet_ports ports = {sizeof(heddle_subnet_ports), 0, 0, 0, 0, 0};
static const heddle_attribute_schema* const attributes[] = {&attribute};
static heddle_gradient_node gradient = {sizeof(heddle_gradient_node), 1, 1, 0, "hostile", "Nothing", 0, 0, 0};
static const heddle_gradient_node* const gradients[] = {&gradient};
static heddle_operator nothing = {
    .struct_size = sizeof(heddle_operator), .version = 1, .domain = "hostile", .name = "Nothing", .infer = infer};
static const heddle_operator* operators[] = {&nothing, &nothing};
static heddle_kernel kernel = {
    .struct_size = sizeof(heddle_kernel), .version = 1, .domain = "hostile", .operator_name = "Nothing", .device_kind = "cpu", .run = run};
static const heddle_kernel* kernels[] = {&kernel, &kernel};
static heddle_resource resource = {
    .struct_size = sizeof(heddle_resource), .scope = HEDDLE_SCOPE_SESSION, .interface_version = 1, .name = "hostile.thing"};
static const heddle_resource* const resources[] = {&resource};
static heddle_rewrite_rule rule = {.struct_size = sizeof(heddle_rewrite_rule), .name = "rule"};
static const heddle_rewrite_rule* const rules[] = {&rule};
static const struct {
  uint32_t struct_size;
  char rest[1024];
} device = {sizeof(device), {0}};
static const struct heddle_device_backend* const devices[] = {(const struct heddle_device_backend*)&device};
static heddle_plugin plugin = {.struct_size = sizeof(heddle_plugin),
                               .abi_major = HEDDLE_ABI_MAJOR,
                               .abi_minor = HEDDLE_ABI_MINOR,
                               .name = "hostile_tables",
                               .version = "1",
                               .operators = operators,
                               .operator_count = 1,
                               .initialize = initialize,
                               .abi_hash = HEDDLE_ABI_HASH};

/* Of a plugin with another layout nothing but the numbers may be touched: not its tables, not its functions. */
static heddle_status never_initialized(const heddle_host* host, const heddle_call* call) {
  (void)host, (void)call;
  abort();
}
static void never_shut_down(void) {
  abort();
}
static void damage_tables(void) {
  plugin.operators = (const heddle_operator* const*)16;
  plugin.initialize = never_initialized;
  plugin.shutdown = never_shut_down;
}

static void damage_plugin(void) {
  switch (HOSTILE_CASE) {
    case short_answer:
      plugin.struct_size = 4;
      break;
    case abi_older:
      plugin.abi_major = 0, plugin.abi_minor = 0;
      break;
    case abi_newer:
      plugin.abi_major = HEDDLE_ABI_MAJOR + 7;
      break;
    case abi_newer_minor:
      plugin.abi_minor = HEDDLE_ABI_MINOR + 1;
      break;
    case abi_other_headers:
      damage_tables(), plugin.abi_hash = HEDDLE_ABI_HASH ^ 1;
      break;
    case abi_no_hash:
      damage_tables(), plugin.struct_size = offsetof(heddle_plugin, abi_hash);
      break;
    case short_plugin:
      plugin.struct_size = 40;
      break;
    case no_name:
      plugin.name = "";
      break;
    case control_name:
      plugin.name = "\x1b]0;owned\x07";
      break;
    case null_operators:
      plugin.operators = 0;
      break;
    case null_operator:
      operators[0] = 0;
      break;
    case huge_operators:
      plugin.operator_count = UINT32_MAX;
      break;
    case operator_twice:
      plugin.operator_count = 2;
      break;
    case null_kernels:
      plugin.kernel_count = 1;
      break;
    case resource_without_create:
      plugin.resources = resources, plugin.resource_count = 1;
      break;
    case resource_without_scope:
      resource.scope = 17, plugin.resources = resources, plugin.resource_count = 1;
      break;
    case resource_without_device:
      resource.scope = HEDDLE_SCOPE_STREAM, plugin.resources = resources, plugin.resource_count = 1;
      break;
    case resource_with_device:
      resource.device_kind = "cpu", plugin.resources = resources, plugin.resource_count = 1;
      break;
    case resource_with_abort:
      resource.abort = stop_resource, plugin.resources = resources, plugin.resource_count = 1;
      break;
    case rule_without_pattern:
      plugin.rules = rules, plugin.rule_count = 1;
      break;
    case device_without_functions:
      plugin.devices = devices, plugin.device_count = 1;
      break;
    default:
      break;
  }
}

static void declare_subnet(const heddle_subnet_ports* its_ports) {
  attribute.type = HEDDLE_ATTRIBUTE_SUBNET, attribute.default_value = 0, attribute.ports = its_ports;
  nothing.attributes = attributes, nothing.attribute_count = 1;
}

static void damage_operator(void) {
  switch (HOSTILE_CASE) {
    case short_operator:
      nothing.struct_size = 16;
      break;
    case no_operator_name:
      nothing.name = 0;
      break;
    case no_infer:
      nothing.infer = 0;
      break;
    case null_ports:
      nothing.input_count = 1;
      break;
    case null_port:
      inputs[0] = 0, nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case short_port:
      x.struct_size = 8, nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case huge_ports:
      nothing.inputs = inputs, nothing.input_count = UINT32_MAX;
      break;
    case port_twice:
      nothing.inputs = inputs, nothing.input_count = 2;
      break;
    case alias_nowhere:
      y.may_alias = 3, nothing.outputs = outputs, nothing.output_count = 1;
      break;
    case alias_of_one:
      y.may_alias = 0, y.flags = HEDDLE_PORT_VARIADIC, nothing.outputs = outputs, nothing.output_count = 1;
      nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case reserved_dtype:
      x.dtypes |= HEDDLE_DTYPE_BIT(14), nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case input_may_update:
      x.flags = HEDDLE_PORT_MAY_UPDATE, nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case output_not_differentiable:
      y.flags = HEDDLE_PORT_NOT_DIFFERENTIABLE, nothing.outputs = outputs, nothing.output_count = 1;
      nothing.gradient = gradient_of_none;
      break;
    case dims_without_meaning:
      x.dims = "N ?", nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case dims_nobody_says:
      y.dims = "N", nothing.outputs = outputs, nothing.output_count = 1;
      break;
    case commutative_of_one:
      nothing.traits = HEDDLE_TRAIT_COMMUTATIVE, nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case commutative_of_several_dtypes:
      x.type_variable = 0, x.flags = HEDDLE_PORT_VARIADIC | HEDDLE_PORT_HETEROGENEOUS;
      nothing.traits = HEDDLE_TRAIT_COMMUTATIVE, nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case no_dtypes:
      x.dtypes = 0, nothing.inputs = inputs, nothing.input_count = 1;
      break;
    case null_attributes:
      nothing.attribute_count = 2;
      break;
    case default_without_content:
      default_value.count = 3, nothing.attributes = attributes, nothing.attribute_count = 1;
      break;
    case default_of_other_type:
      default_value.type = HEDDLE_ATTRIBUTE_INT, nothing.attributes = attributes, nothing.attribute_count = 1;
      break;
    case subnet_without_ports:
      nothing.subnets = infer;
      declare_subnet(0);
      break;
    case subnet_of_nobody:
      nothing.subnets = infer;
      ports.first_input = 3;
      declare_subnet(&ports);
      break;
    case subnet_undeclared:
      declare_subnet(&ports);
      break;
    case ports_of_no_subnet:
      attribute.ports = &ports, nothing.attributes = attributes, nothing.attribute_count = 1;
      break;
    case null_gradient_roles:
      nothing.gradient_nodes = gradients, nothing.gradient_node_count = 1;
      break;
    case bad_pointwise:
      nothing.pointwise = "max(x, ";
      break;
    default:
      break;
  }
}

static void damage_kernel(void) {
  switch (HOSTILE_CASE) {
    case kernel_without_operator:
      kernel.operator_name = "Unheard";
      break;
    case kernel_without_run:
      kernel.run = 0;
      break;
    case kernel_without_destroy:
      kernel.create = create;
      break;
    case abort_without_async:
      kernel.abort = stop_soon;
      break;
    case async_on_device:
      kernel.flags = HEDDLE_KERNEL_ASYNC, kernel.device_kind = "gpu";
      break;
    case async_and_resumes:
      kernel.flags = HEDDLE_KERNEL_ASYNC | HEDDLE_KERNEL_RESUMES;
      break;
    case resumes_on_device:
      kernel.flags = HEDDLE_KERNEL_RESUMES, kernel.device_kind = "gpu";
      break;
    case group_without_function:
      kernel.flags = HEDDLE_KERNEL_GROUP;
      break;
    case group_function_without_flag:
      kernel.run_group = run_group;
      break;
    case group_and_async:
      kernel.flags = HEDDLE_KERNEL_GROUP | HEDDLE_KERNEL_ASYNC, kernel.run_group = run_group;
      break;
    case group_of_no_collective:
      kernel.flags = HEDDLE_KERNEL_GROUP, kernel.run_group = run_group;
      break;
    case kernel_twice:
      plugin.kernel_count = 1;
      break;
    case short_kernel:
      kernel.struct_size = 24;
      break;
    default:
      return;
  }
  plugin.kernels = kernels;
  ++plugin.kernel_count;
}

HEDDLE_EXPORT const heddle_plugin* heddle_plugin_query(const heddle_host* host, const heddle_call* call) {
  (void)host, (void)call;
  if (HOSTILE_CASE == null_table) return 0;
  damage_plugin();
  damage_operator();
  damage_kernel();
  return &plugin;
}
