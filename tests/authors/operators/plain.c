/* A plugin in C, of abi.h alone: y = a * b + c, or a * b - c. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "heddle/abi.h"

#define REAL (HEDDLE_DTYPE_BIT(HEDDLE_F32) | HEDDLE_DTYPE_BIT(HEDDLE_F64))
#define SLICE 16384 /* elements of a tile */

static const heddle_port a_port = {sizeof(heddle_port), 0, "a", "T", REAL, HEDDLE_DTYPE_NONE, -1, -1, -1, -1, "..."};
static const heddle_port b_port = {sizeof(heddle_port), 0, "b", "T", REAL, HEDDLE_DTYPE_NONE, -1, -1, -1, -1, "..."};
static const heddle_port c_port = {sizeof(heddle_port), 0, "c", "T", REAL, HEDDLE_DTYPE_NONE, -1, -1, -1, -1, "..."};
static const heddle_port y_port = {
    sizeof(heddle_port), 0, "y", "T", REAL, HEDDLE_DTYPE_NONE, -1, 2, -1, -1, "..."}; /* may take c's bytes */
static const heddle_port* const inputs[] = {&a_port, &b_port, &c_port};
static const heddle_port* const outputs[] = {&y_port};

/* The ports say all of it. */
static heddle_status infer(const heddle_infer_context* context) {
  (void)context;
  return HEDDLE_OK;
}

static const heddle_attribute subtract_default = {
    .struct_size = sizeof(heddle_attribute), .type = HEDDLE_ATTRIBUTE_INT, .name = "subtract"};
static const heddle_attribute_schema subtract = {
    .struct_size = sizeof(heddle_attribute_schema), .type = HEDDLE_ATTRIBUTE_INT, .name = "subtract", .default_value = &subtract_default};
static const heddle_attribute_schema* const attributes[] = {&subtract};

/* The state of a node is one of these two. */
static const int adds = 1, subtracts = -1;

static heddle_status create(const heddle_create_context* context, void** state) {
  *state = (void*)(context->attributes[0]->i ? &subtracts : &adds);
  return HEDDLE_OK;
}

static void destroy(void* state) {
  (void)state;
}

static heddle_status prepare(heddle_prepare_context* context) {
  context->tile_count = (context->outputs[0]->element_count + SLICE - 1) / SLICE;
  return HEDDLE_OK;
}

static int64_t last_of(const heddle_run_context* context, int64_t end) {
  const int64_t count = context->outputs[0]->element_count;
  return end * SLICE < count ? end * SLICE : count;
}

static heddle_status run_f32(const heddle_run_context* context, int64_t begin, int64_t end) {
  const float *a = context->inputs[0]->data, *b = context->inputs[1]->data, *c = context->inputs[2]->data;
  float* y = context->outputs[0]->data;
  const float sign = (float)*(const int*)context->state;
  const int64_t last = last_of(context, end);
  for (int64_t i = begin * SLICE; i < last; ++i) y[i] = a[i] * b[i] + sign * c[i];
  return HEDDLE_OK;
}

static heddle_status run_f64(const heddle_run_context* context, int64_t begin, int64_t end) {
  const double *a = context->inputs[0]->data, *b = context->inputs[1]->data, *c = context->inputs[2]->data;
  double* y = context->outputs[0]->data;
  const double sign = *(const int*)context->state;
  const int64_t last = last_of(context, end);
  for (int64_t i = begin * SLICE; i < last; ++i) y[i] = a[i] * b[i] + sign * c[i];
  return HEDDLE_OK;
}

/* da = dy * b, db = dy * a, dc = dy or -dy. */
static heddle_status gradient(const heddle_gradient_builder* builder) {
  const heddle_value_handle dy = builder->output_gradients[0];
  for (int i = 0; i < 2; ++i) {
    const heddle_value_handle product[] = {dy, builder->inputs[1 - i]};
    const heddle_status status = builder->emit(builder, "", "Mul", product, 2, &builder->input_gradients[i], 1, NULL, 0);
    if (status != HEDDLE_OK) return status;
  }
  return builder->emit(builder, "", builder->attributes[0]->i ? "Neg" : "Identity", &dy, 1, &builder->input_gradients[2], 1, NULL, 0);
}

static heddle_status cost(const heddle_infer_context* context, heddle_cost* cost) {
  double elements = 1;
  for (int32_t i = 0; i < context->inputs[0]->rank; ++i) elements *= (double)context->inputs[0]->dims[i];
  cost->flops = 2 * elements;
  return HEDDLE_OK;
}

static const heddle_example added = {sizeof(heddle_example), 0, "f32[3] = 1 2 3, f32[3] = 4 5 6, f32[3] = 0.5 -1 100 -> f32[3] = 4.5 9 118",
                                     "by hand"};
static const heddle_example subtracted = {sizeof(heddle_example), 0,
                                          "f64[2,1] = 1 2, f64[2,1] = 4 5, f64[2,1] = 0.5 -1; subtract=1 -> f64[2,1] = 3.5 11", "by hand"};
static const heddle_example* const examples[] = {&added, &subtracted};

static const heddle_operator multiply_add = {.struct_size = sizeof(heddle_operator),
                                             .version = 1,
                                             .domain = "authors",
                                             .name = "MultiplyAdd",
                                             .doc = "y = a * b + c, or a * b - c",
                                             .inputs = inputs,
                                             .outputs = outputs,
                                             .attributes = attributes,
                                             .input_count = 3,
                                             .output_count = 1,
                                             .attribute_count = 1,
                                             .infer = infer,
                                             .cost = cost,
                                             .gradient = gradient,
                                             .examples = examples,
                                             .example_count = 2};
static const heddle_operator* const operators[] = {&multiply_add};

static const heddle_dtype_set f32[] = {HEDDLE_DTYPE_BIT(HEDDLE_F32)}, f64[] = {HEDDLE_DTYPE_BIT(HEDDLE_F64)};
#define KERNEL(sets, run_function)                                                                                                 \
  {                                                                                                                                \
    .struct_size = sizeof(heddle_kernel), .version = 1, .domain = "authors", .operator_name = "MultiplyAdd", .device_kind = "cpu", \
    .input_dtypes = sets, .input_dtype_count = 1, .create = create, .destroy = destroy, .prepare = prepare, .run = run_function    \
  }
static const heddle_kernel kernel_f32 = KERNEL(f32, run_f32), kernel_f64 = KERNEL(f64, run_f64);
static const heddle_kernel* const kernels[] = {&kernel_f32, &kernel_f64};

static const heddle_plugin plugin = {.struct_size = sizeof(heddle_plugin),
                                     .abi_major = HEDDLE_ABI_MAJOR,
                                     .abi_minor = HEDDLE_ABI_MINOR,
                                     .name = "authors_plain",
                                     .version = "1.0",
                                     .operators = operators,
                                     .kernels = kernels,
                                     .operator_count = 1,
                                     .kernel_count = 2,
                                     .abi_hash = HEDDLE_ABI_HASH};

HEDDLE_EXPORT const heddle_plugin* heddle_plugin_query(const heddle_host* host, const heddle_call* call);
const heddle_plugin* heddle_plugin_query(const heddle_host* host, const heddle_call* call) {
  (void)host, (void)call;
  return &plugin;
}
