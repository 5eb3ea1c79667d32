// The optional input `apply` of operators that update variables: a scalar that says whether the update is made. Where it is false the next
// versions have the bytes of the variables, as if the operator had not been run.
#pragma once

#include <cstdint>
#include <cstring>

#include "support/cpu_api.h"

namespace heddle::cpu {

// Checks the input `port`, in infer.
inline Status check_apply(const InferContext& context, uint32_t port) {
  return context.has_input(port) && context.input(port).element_count != 1
             ? invalid("apply has shape " + dims_text(context.dims(port)) + ", expected one element")
             : Status();
}

// A kernel class whose input `port` is `apply`, and whose output i is the next version of input i.
template <class Kernel, uint32_t port>
class AppliedUpdate : public Kernel {
 public:
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const heddle_tensor* const apply = port < context.input_count ? context.inputs[port] : nullptr;
    if (!apply || *static_cast<const uint8_t*>(apply->data) != 0) return Kernel::run(context, begin, end);
    // In a call outside of a net the outputs may have other memory.
    for (uint32_t o = 0; begin == 0 && o < context.output_count; ++o)
      if (context.outputs[o]->data != context.inputs[o]->data && context.outputs[o]->byte_size > 0)
        std::memcpy(context.outputs[o]->data, context.inputs[o]->data, context.outputs[o]->byte_size);
    return {};
  }
};

}  // namespace heddle::cpu
