// Infers the types of one operator's outputs from its inputs: dtypes by the schema's type variables, extents by the plugin's infer
// function.
#pragma once

#include <span>
#include <vector>

#include "heddle/status.h"
#include "net/typed_net.h"
#include "plugin/abi_attributes.h"
#include "plugin/call_end.h"
#include "plugin/host.h"

namespace heddle {

// `inputs`: views, null for absent ones, data non-null where the content is known. `wanted[i]`: whether output i is requested. Writes one
// type per output (unwanted ones stay none). Pure. Errors: arity_mismatch, dtype_mismatch, shape_mismatch, unsupported; the caller adds net
// and node. `end`, when given, describes a failure.
Status infer_operator(const OperatorSchema& schema, const AttributeTable& attributes, std::span<const heddle_tensor* const> inputs,
                      std::span<const char> wanted, std::span<TensorType> outputs, CallServices* services, CallEnd* end = nullptr);

// Makes an operator with subnets report the inputs of its subnets for such inputs, by `services.declare_subnet`. Errors: those of
// `services`, as from_subnet() rewrites them; subnet_mismatch.
Status ask_subnets(const OperatorSchema& schema, const AttributeTable& attributes, std::span<const heddle_tensor* const> inputs,
                   std::span<const char> wanted, CallServices& services, CallEnd* end = nullptr);

// Infers only the dtypes, as far as the schema's type variables and defaults determine them; none where only an attribute does.
Status infer_dtypes(const OperatorSchema& schema, std::span<const heddle_tensor* const> inputs, std::span<TensorType> outputs);

// A type as the ABI's struct and back. from_abi refuses negative extents that are not marked dynamic, ranks and dtypes out of range.
heddle_type to_abi(const TensorType& type);
Status from_abi(const heddle_type& type, TensorType* out);
// The type of a subnet's output as an operator sees it: extents that follow a bounded value must not be used for planning.
heddle_type subnet_output_type(const TensorType& type);
// The type of output `i` of a typed subnet for an operator, with its content where it is known.
heddle_type subnet_output_type(const TypedNet& subnet, size_t i);

// Checks whether a kernel may request memory of these dims for output `output`, inferred as `type` (heddle_host::allocate_output); `dims`
// may be null and `rank` anything, as the plugin gave them. `runs_subnets`: dims are not compared with `type`, since the subnets decide
// them (the branches of an If may differ in rank). Errors: kernel_failed.
Status check_asked_output(bool runs_subnets, uint32_t output, const TensorType& type, const int64_t* dims, int32_t rank);

}  // namespace heddle
