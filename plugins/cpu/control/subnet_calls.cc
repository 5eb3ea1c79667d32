// The plumbing of If, Loop and Scan towards the host's subnet functions.
#include "control/subnet_calls.h"

#include <algorithm>
#include <cstring>

#include "support/dims.h"

namespace heddle::cpu {

heddle_tensor make_view(heddle_dtype dtype, const int64_t* dims, int rank, void* data) {
  heddle_tensor view = {};
  view.struct_size = sizeof(view);
  view.dtype = dtype;
  view.rank = rank;
  view.data = data;
  view.dims = dims;
  view.element_count = Dims{dims, rank}.count(0, rank);
  view.byte_size = static_cast<uint64_t>(view.element_count) * byte_width(dtype);
  view.extent_axis = -1;
  return view;
}

Status infer_subnet(const InferContext& context, const heddle_subnet* subnet, const std::vector<const heddle_tensor*>& inputs,
                    uint32_t count, std::vector<heddle_type>* types) {
  const heddle_infer_context* raw = context.raw();
  types->assign(count, {});
  std::vector<heddle_type*> pointers;
  for (heddle_type& type : *types) {
    type.struct_size = sizeof(type);
    type.bounded_axis = -1;
    pointers.push_back(&type);
  }
  const heddle_status status =
      raw->host->infer_subnet(raw->call, subnet, inputs.data(), static_cast<uint32_t>(inputs.size()), pointers.data(), count);
  return status == HEDDLE_OK ? Status() : Status(status, "");
}

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

Status run_subnet(const RunContext& context, const heddle_subnet* subnet, int64_t trip, const heddle_tensor* const* inputs,
                  uint32_t input_count, heddle_tensor* const* outputs, uint32_t output_count) {
  const heddle_status status =
      context.host->run_subnet(context.call, subnet, static_cast<uint64_t>(trip), inputs, input_count, outputs, output_count);
  return status == HEDDLE_OK ? Status() : Status(status, "");
}

Status give_output(const RunContext& context, uint32_t output, const heddle_tensor& result) {
  void* data = allocate_output(context, output, dims_of(result));
  if (!data && result.byte_size > 0) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for output " + std::to_string(output)};
  if (result.byte_size > 0) std::memcpy(data, result.data, result.byte_size);
  return {};
}

}  // namespace heddle::cpu
