/* The boundary's headers as a C11 program sees them, alone and in any order. Compiled by the tests with every compiler found. */
#include "heddle/abi.h"
#include "heddle/device_plugin.h"

_Static_assert(sizeof(heddle_status) == 4 && sizeof(heddle_dtype) == 4, "enums of the boundary have a fixed width");

static heddle_status infer(const heddle_infer_context* context) {
  if (!HEDDLE_HAS(heddle_infer_context, context, op)) return HEDDLE_ERROR_INVALID;
  context->outputs[0]->rank = context->inputs[0]->rank;
  return HEDDLE_OK;
}

HEDDLE_EXPORT const heddle_plugin* heddle_plugin_query(const heddle_host* host, const heddle_call* call) {
  (void)call;
  static const heddle_operator op = {
      .struct_size = sizeof(heddle_operator), .version = 1, .domain = "c", .name = "Nothing", .infer = infer};
  static const heddle_operator* const operators[] = {&op};
  static const heddle_plugin plugin = {.struct_size = sizeof(heddle_plugin),
                                       .abi_major = HEDDLE_ABI_MAJOR,
                                       .abi_minor = HEDDLE_ABI_MINOR,
                                       .name = "c",
                                       .version = "1",
                                       .operators = operators,
                                       .operator_count = 1,
                                       .abi_hash = HEDDLE_ABI_HASH};
  return host ? &plugin : 0;
}
