// Types of one operator's outputs from its inputs: dtypes by the schema's type variables, extents by the plugin's infer function.
#pragma once

#include <span>
#include <vector>

#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/abi_attributes.h"
#include "plugin/call_end.h"
#include "plugin/host.h"

namespace heddle {

// `inputs`: views, null for absent ones, data non-null where the content is known. `wanted[i]`: whether output i is asked for.
// Writes one type per output (unwanted ones stay none). Pure. Errors: arity_mismatch, dtype_mismatch, shape_mismatch, unsupported; the
// caller adds net and node. `end`, when given, is told of a failure.
Status infer_operator(const OperatorSchema& schema, const AttributeTable& attributes, std::span<const heddle_tensor* const> inputs,
                      std::span<const char> wanted, std::span<TensorType> outputs, CallServices* services, CallEnd* end = nullptr);

// Asks an operator with subnets what they are run with, for such inputs: it tells `services.declare_subnet`. Errors: those of `services`,
// as from_subnet() tells them; subnet_mismatch.
Status ask_subnets(const OperatorSchema& schema, const AttributeTable& attributes, std::span<const heddle_tensor* const> inputs,
                   std::span<const char> wanted, CallServices& services, CallEnd* end = nullptr);

// Only the dtypes, as far as the schema's type variables and defaults say them; none where only an attribute does.
Status infer_dtypes(const OperatorSchema& schema, std::span<const heddle_tensor* const> inputs, std::span<TensorType> outputs);

// A type as the ABI's struct and back. from_abi refuses negative extents that are not marked dynamic, ranks and dtypes out of range.
heddle_type to_abi(const TensorType& type);
Status from_abi(const heddle_type& type, TensorType* out);
// What an operator is told of its subnet's output: extents that follow a bounded value are not to be planned with.
heddle_type subnet_output_type(const TensorType& type);
// The same of output `i` of a typed subnet, with what is known of its content.
heddle_type subnet_output_type(const TypedNet& subnet, size_t i);

// Whether a kernel may ask for memory of these dims for output `output`, inferred as `type` (heddle_host::allocate_output); `dims` may be
// null and `rank` anything, as the plugin gave them. `runs_subnets`: dims are not compared with `type`, since the subnets decide them (the
// branches of an If may differ in rank). Errors: kernel_failed.
Status check_asked_output(bool runs_subnets, uint32_t output, const TensorType& type, const int64_t* dims, int32_t rank);

}  // namespace heddle
