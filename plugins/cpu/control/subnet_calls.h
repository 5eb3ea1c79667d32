// What If, Loop and Scan share: inferring and running the subnets of a node, and the views that they pass.
//
// Subnets have no implicit captures: outer values are trailing inputs of the node and of each body. A failing subnet has told the host
// its error text; the Status then carries a code and no text.
#pragma once

#include <cstdint>
#include <vector>

#include "support/dims.h"

namespace heddle::cpu {

// A view without content, as infer passes a value that differs between iterations.
inline heddle_tensor without_data(heddle_tensor view) {
  if (view.element_count > 0) view.data = nullptr;
  view.flags &= ~static_cast<uint32_t>(HEDDLE_TENSOR_CONSTANT);
  return view;
}

// A dense view; `dims` must outlive it.
heddle_tensor make_view(heddle_dtype dtype, const int64_t* dims, int rank, void* data);

// False for outputs of dynamic extents, which have no memory before they are given.
inline bool is_planned(const heddle_tensor& output) {
  return !(output.flags & HEDDLE_TENSOR_DYNAMIC);
}

// Types of all `count` outputs of a subnet.
Status infer_subnet(const InferContext& context, const heddle_subnet* subnet, const std::vector<const heddle_tensor*>& inputs,
                    uint32_t count, std::vector<heddle_type>* types);

// What a node runs its body with: `Inputs` finds them, as it does for its infer.
template <class Inputs>
Status declare_body(const SubnetContext& context) {
  Inputs body;
  HEDDLE_PLUGIN_CHECK(body.find(context));
  return context.declare("body", body.inputs);
}

// The same element type and extents, all known beforehand.
bool same_static(const heddle_type& type, heddle_dtype dtype, Dims dims);
inline bool is_static(const heddle_type& type) {
  return !(type.flags & HEDDLE_TYPE_DYNAMIC) && type.bounded_axis < 0;
}
inline Dims dims_of(const heddle_type& type) {
  return {type.dims, type.rank};
}
// Outputs of unknown extents keep dtype and rank.
void set_type(InferContext& context, uint32_t output, const heddle_type& type);

// `trip`: a number of this run of it, by which its random numbers differ from those of others. HEDDLE_PENDING: the kernel hands that on,
// and asks again when it is resumed.
Status run_subnet(const RunContext& context, const heddle_subnet* subnet, int64_t trip, const heddle_tensor* const* inputs,
                  uint32_t input_count, heddle_tensor* const* outputs, uint32_t output_count);
// Memory of the host for a dynamic output, with the dims of `result`, filled with its bytes.
Status give_output(const RunContext& context, uint32_t output, const heddle_tensor& result);

// Hands out parts of the step's scratch; measured by the same calls in prepare with a null base.
class ScratchArea {
 public:
  explicit ScratchArea(void* base = nullptr) : base_(static_cast<char*>(base)) {}
  template <class T>
  T* take(uint64_t count) {
    used_ = (used_ + 63) / 64 * 64;
    T* at = base_ ? reinterpret_cast<T*>(base_ + used_) : nullptr;
    used_ += count * sizeof(T);  // NOLINT(bugprone-sizeof-expression): T may be a pointer
    return at;
  }
  uint64_t used() const { return used_; }

 private:
  char* base_;
  uint64_t used_ = 0;
};

}  // namespace heddle::cpu
