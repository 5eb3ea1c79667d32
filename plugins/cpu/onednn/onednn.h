// oneDNN's C API with owners: engine, memory descriptors, primitive descriptors, post-ops. Compile-time objects only; onednn_call.h has
// those that run.
//
// All tensors here are f32. Sizes and strides in elements unless a name says bytes. oneDNN fixes the number of threads of most primitives
// when they are created and of the rest when they run: hold a SerialSection around both, everything is then single-threaded and one tile
// is one thread's work. oneDNN keeps its own cache of primitives (1,024, by descriptor), so creating one a second time costs 1-2 µs.
// Objects are not shared while being built; finished descriptors are read-only and may be used by any thread.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "onednn/onednn_version.h"
#include "support/cpu_api.h"

namespace heddle::cpu::onednn {

// Returns the error of a failed call of oneDNN as a sentence.
Status failure(const char* what, dnnl_status_t status);

// Leaves the enclosing function with a Status when the call of oneDNN failed.
#define HEDDLE_DNNL_CHECK(what, call)                                             \
  do {                                                                            \
    const dnnl_status_t dnnl_result_ = (call);                                    \
    if (dnnl_result_ != dnnl_success) return onednn::failure(what, dnnl_result_); \
  } while (false)

// The calling thread starts no OpenMP team while this lives; its own setting returns afterwards.
class SerialSection {
 public:
  SerialSection();
  ~SerialSection();
  SerialSection(const SerialSection&) = delete;
  SerialSection& operator=(const SerialSection&) = delete;

 private:
  int before_;
};

// Owns one object of the C API.
template <class T, dnnl_status_t (*release)(T)>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Handle() {
    if (object_) release(object_);
  }
  T get() const { return object_; }
  // Where a creating call stores the object; the handle must be empty.
  T* out() { return &object_; }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  T object_ = nullptr;
};
using Stream = Handle<dnnl_stream_t, dnnl_stream_destroy>;
using Memory = Handle<dnnl_memory_t, dnnl_memory_destroy>;
using Primitive = Handle<dnnl_primitive_t, dnnl_primitive_destroy>;

// The process's CPU engine; null (and an error from every creating call) when oneDNN refuses this processor. Any thread.
dnnl_engine_t engine();

// ---------------------------------------------------------------- memory descriptors

// Row-major when `strides` is empty.
Status describe(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, MemoryDesc* desc);
// dims N C S...; in memory N S... C.
Status describe_channels_last(const std::vector<int64_t>& dims, MemoryDesc* desc);
// The layout is oneDNN's choice.
Status describe_any(const std::vector<int64_t>& dims, MemoryDesc* desc);
uint64_t bytes_of(const MemoryDesc& desc);
// The physical layout as text: equal for equal bytes, a key for packed weights.
std::string key_of(const MemoryDesc& desc);

// ---------------------------------------------------------------- post-ops and primitive descriptors

class PostOps {
 public:
  Status create();
  Status sum();
  Status eltwise(dnnl_alg_kind_t algorithm, float alpha, float beta);
  Status binary(dnnl_alg_kind_t algorithm, const MemoryDesc& operand);
  const_dnnl_post_ops_t get() const { return handle_.get(); }

 private:
  Handle<dnnl_post_ops_t, dnnl_post_ops_destroy> handle_;
};

// The implementation, layouts and scratch that oneDNN would use for one operation.
class PrimitiveDesc {
 public:
  // `operation` is a ConvolutionOperation or a ProductOperation; `post_ops` may be null. Scratch comes from the caller.
  template <class Operation>
  Status create(const Operation& operation, const PostOps* post_ops);
  Status create_reorder(const MemoryDesc& source, const MemoryDesc& target);
  MemoryDesc query(dnnl_query_t what) const;
  uint64_t scratch_bytes() const { return bytes_of(query(dnnl_query_scratchpad_md)); }
  // "brgconv:avx512_core", ...
  std::string implementation() const;
  // True if oneDNN found no fast implementation: this one is hundreds of times slower.
  bool is_reference() const { return implementation().rfind("ref", 0) == 0; }
  // A convolution as a matrix product of unrolled columns. With three spatial dimensions oneDNN 2.6 applies the first channel's operand to
  // all channels, and its relu gives -0 for elements that it bounds.
  bool is_product_of_columns() const { return implementation().rfind("gemm:", 0) == 0 || implementation().rfind("x64:gemm:", 0) == 0; }
  const_dnnl_primitive_desc_t get() const { return handle_.get(); }

 private:
  Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy> handle_;
};

// dnnl_primitive_create. Errors: out_of_memory, also where oneDNN itself would fault.
Status create_primitive(Primitive& primitive, const_dnnl_primitive_desc_t desc);
// Copies `source` into the layout of `target` on this thread. Allocates: for packing in prepare, not for run.
Status copy_once(const MemoryDesc& source_desc, const void* source, const MemoryDesc& target_desc, void* target);

}  // namespace heddle::cpu::onednn
