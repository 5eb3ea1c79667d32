// Helpers that If, Loop and Scan share in addition to op/subnet.h: types of outputs that a subnet decides, and parts of scratch.
//
// Subnets have no implicit captures: outer values are trailing inputs of the node and of each body. A failing subnet has reported its error
// text to the host; the Status then carries a code and no text.
#pragma once

#include <cstdint>
#include <vector>

#include "shared/dims.h"
#include "support/cpu_api.h"

namespace heddle::cpu {

// False for outputs of dynamic extents, which have no memory before the run allocates it.
inline bool is_planned(const heddle_tensor& output) {
  return !(output.flags & HEDDLE_TENSOR_DYNAMIC);
}

// Declares the inputs of a node's body: `Inputs` finds them, as it does for the node's infer.
template <class Inputs>
Status declare_body(const SubnetContext& context) {
  Inputs body;
  HEDDLE_PLUGIN_CHECK(body.find(context));
  return context.declare("body", body.inputs);
}

// Whether a net may contain a subnet that failed with `failure`, as long as no run executes it: its operators do not fit their inputs, or
// no kernel exists for them. For other failures (limits, memory, a deadline) the host rejects the net all the same.
inline bool may_be_left_out(const Status& failure) {
  return failure.code == HEDDLE_ERROR_INVALID || failure.code == HEDDLE_ERROR_UNSUPPORTED;
}

// True if both have the same element type and extents, all known before the run.
bool same_static(const heddle_type& type, heddle_dtype dtype, Dims dims);
inline bool is_static(const heddle_type& type) {
  return !(type.flags & HEDDLE_TYPE_DYNAMIC) && type.bounded_axis < 0;
}
// Outputs of unknown extents keep dtype and rank.
void set_type(InferContext& context, uint32_t output, const heddle_type& type);

// Allocates host memory for a dynamic output, with the dims of `result`, and fills it with its bytes.
Status give_output(const RunContext& context, uint32_t output, const heddle_tensor& result);

// Whether a subnet may read and write parts of `bytes` each in place in a tensor. Kernels of devices are promised that tensors begin at
// multiples of 64 bytes; those of the host are not.
inline bool lies_well(const heddle_tensor& whole, int64_t bytes) {
  return whole.space == HEDDLE_SPACE_HOST || bytes % 64 == 0;
}

// Hands out parts of the step's scratch; in prepare the same calls with a null base measure it.
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
