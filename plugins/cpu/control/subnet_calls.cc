// Calls of the host's subnet functions for If, Loop and Scan.
#include "control/subnet_calls.h"

#include <algorithm>
#include <cstring>

#include "shared/dims.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

bool same_static(const heddle_type& type, heddle_dtype dtype, Dims dims) {
  const Dims own = dims_of(type);
  return is_static(type) && type.dtype == dtype && std::equal(own.begin(), own.end(), dims.begin(), dims.end());
}

void set_type(InferContext& context, uint32_t output, const heddle_type& type) {
  context.set_dtype(output, type.dtype);
  if (is_static(type))
    context.set_dims(output, dims_of(type));
  else
    context.set_dynamic(output, type.rank);
}

Status give_output(const RunContext& context, uint32_t output, const heddle_tensor& result) {
  void* data = allocate_output(context, output, dims_of(result));
  if (!data && result.byte_size > 0) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for output " + std::to_string(output)};
  if (result.byte_size > 0) std::memcpy(data, result.data, result.byte_size);
  return {};
}

}  // namespace heddle::cpu
