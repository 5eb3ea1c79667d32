// The C API of oneDNN 2 and of oneDNN 3 under one set of names: memory descriptors, post-ops and the creation of primitive descriptors.
//
// oneDNN 3 shows nothing of a memory descriptor's struct, creates primitive descriptors without the operation descriptors of version 2, and
// moves the scales of post-ops elsewhere. Everything that differs is in this file; its functions add nothing to the calls. Errors are
// oneDNN's own; onednn.h makes sentences of them.
#pragma once

#include <oneapi/dnnl/dnnl.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace heddle::cpu::onednn {

#if DNNL_VERSION_MAJOR >= 3

// A memory descriptor as a value. A copy for which there is no memory is empty, which every call of oneDNN refuses.
class MemoryDesc {
 public:
  using Pointer = const_dnnl_memory_desc_t;
  MemoryDesc() = default;
  explicit MemoryDesc(Pointer desc) {
    if (desc) dnnl_memory_desc_clone(&desc_, desc);
  }
  MemoryDesc(const MemoryDesc& other) : MemoryDesc(other.get()) {}
  MemoryDesc(MemoryDesc&& other) noexcept : desc_(std::exchange(other.desc_, nullptr)) {}
  MemoryDesc& operator=(MemoryDesc other) noexcept {
    std::swap(desc_, other.desc_);
    return *this;
  }
  ~MemoryDesc() {
    if (desc_) dnnl_memory_desc_destroy(desc_);
  }
  Pointer get() const { return desc_; }
  // Row-major when `strides` is null.
  dnnl_status_t set_strides(const std::vector<int64_t>& dims, const int64_t* strides) {
    *this = MemoryDesc();
    return dnnl_memory_desc_create_with_strides(&desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32, strides);
  }
  dnnl_status_t set_any(const std::vector<int64_t>& dims) {
    *this = MemoryDesc();
    return dnnl_memory_desc_create_with_tag(&desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32, dnnl_format_tag_any);
  }
  // Calls append(number) for all numbers that make up the physical layout. Nothing else distinguishes layouts of f32.
  template <class Append>
  void for_each_number(const Append& append) const {
    const auto number = [this](dnnl_query_t what) {
      int value = 0;
      dnnl_memory_desc_query(desc_, what, &value);
      return value;
    };
    const auto numbers = [this, &append](dnnl_query_t what, int count) {
      const dnnl_dims_t* values = nullptr;
      if (dnnl_memory_desc_query(desc_, what, &values) != dnnl_success) return;
      for (int i = 0; i < count; ++i) append((*values)[i]);
    };
    dnnl_format_kind_t format = dnnl_format_kind_undef;
    dnnl_memory_desc_query(desc_, dnnl_query_format_kind, &format);
    int64_t offset = 0;
    dnnl_memory_desc_query(desc_, dnnl_query_submemory_offset_s64, &offset);
    append(format);
    append(offset);
    const int rank = number(dnnl_query_ndims_s32), blocks = number(dnnl_query_inner_nblks_s32);
    for (const dnnl_query_t what : {dnnl_query_dims, dnnl_query_padded_dims, dnnl_query_strides}) numbers(what, rank);
    for (const dnnl_query_t what : {dnnl_query_inner_idxs, dnnl_query_inner_blks}) numbers(what, blocks);
  }

 private:
  dnnl_memory_desc_t desc_ = nullptr;
};

#else

// A memory descriptor as a value.
class MemoryDesc {
 public:
  using Pointer = const dnnl_memory_desc_t*;
  MemoryDesc() = default;
  explicit MemoryDesc(Pointer desc) : desc_(*desc) {}
  Pointer get() const { return &desc_; }
  // Row-major when `strides` is null.
  dnnl_status_t set_strides(const std::vector<int64_t>& dims, const int64_t* strides) {
    return dnnl_memory_desc_init_by_strides(&desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32, strides);
  }
  dnnl_status_t set_any(const std::vector<int64_t>& dims) {
    return dnnl_memory_desc_init_by_tag(&desc_, static_cast<int>(dims.size()), dims.data(), dnnl_f32, dnnl_format_tag_any);
  }
  // Calls append(number) for all numbers that make up the physical layout.
  template <class Append>
  void for_each_number(const Append& append) const {
    append(desc_.format_kind);
    append(desc_.offset0);
    append(static_cast<int64_t>(desc_.extra.flags));
    const dnnl_blocking_desc_t& blocking = desc_.format_desc.blocking;
    for (const int64_t* numbers : {desc_.dims, desc_.padded_dims, blocking.strides})
      for (int i = 0; i < desc_.ndims; ++i) append(numbers[i]);
    for (const int64_t* numbers : {blocking.inner_idxs, blocking.inner_blks})
      for (int i = 0; i < blocking.inner_nblks; ++i) append(numbers[i]);
  }

 private:
  dnnl_memory_desc_t desc_ = {};
};

#endif

// One convolution, as it is given to oneDNN. Descriptors are borrowed; `bias` may be null. The arrays have a number per spatial dimension;
// a dilation of 0 leaves no gaps. The gradient of the filters has the layouts of the convolution: `weights` is what it writes.
struct ConvolutionOperation {
  enum class Kind { forward, transposed, filter_gradient } kind;
  const MemoryDesc* x;
  const MemoryDesc* weights;
  const MemoryDesc* bias;
  const MemoryDesc* y;
  const int64_t *stride, *dilation, *pad_begin, *pad_end;
};
// y = a * b + bias; `bias` may be null.
struct ProductOperation {
  const MemoryDesc* a;
  const MemoryDesc* b;
  const MemoryDesc* bias;
  const MemoryDesc* y;
};

inline MemoryDesc::Pointer pointer_of(const MemoryDesc* desc) {
  return desc ? desc->get() : nullptr;
}

#if DNNL_VERSION_MAJOR >= 3

inline dnnl_status_t create_desc(const ConvolutionOperation& c, const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                 dnnl_primitive_desc_t* desc) {
  const MemoryDesc::Pointer x = c.x->get(), weights = c.weights->get(), bias = pointer_of(c.bias), y = c.y->get();
  switch (c.kind) {
    case ConvolutionOperation::Kind::filter_gradient:
      return dnnl_convolution_backward_weights_primitive_desc_create(desc, engine, dnnl_convolution_direct, x, weights, bias, y, c.stride,
                                                                     c.dilation, c.pad_begin, c.pad_end, nullptr, attributes);
    case ConvolutionOperation::Kind::transposed:
      return dnnl_deconvolution_forward_primitive_desc_create(desc, engine, dnnl_forward_inference, dnnl_deconvolution_direct, x, weights,
                                                              bias, y, c.stride, c.dilation, c.pad_begin, c.pad_end, attributes);
    default:
      return dnnl_convolution_forward_primitive_desc_create(desc, engine, dnnl_forward_inference, dnnl_convolution_direct, x, weights, bias,
                                                            y, c.stride, c.dilation, c.pad_begin, c.pad_end, attributes);
  }
}

inline dnnl_status_t create_desc(const ProductOperation& product, const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                 dnnl_primitive_desc_t* desc) {
  return dnnl_matmul_primitive_desc_create(desc, engine, product.a->get(), product.b->get(), pointer_of(product.bias), product.y->get(),
                                           attributes);
}

inline dnnl_status_t append_sum(dnnl_post_ops_t post_ops) {
  return dnnl_post_ops_append_sum(post_ops, 1.0f, 0, dnnl_data_type_undef);
}
inline dnnl_status_t append_eltwise(dnnl_post_ops_t post_ops, dnnl_alg_kind_t algorithm, float alpha, float beta) {
  return dnnl_post_ops_append_eltwise(post_ops, algorithm, alpha, beta);
}
inline dnnl_status_t set_data(dnnl_memory_t memory, const void* data, dnnl_stream_t) {
  return dnnl_memory_set_data_handle(memory, const_cast<void*>(data));
}

#else

inline dnnl_status_t create_desc(const ConvolutionOperation& c, const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                 dnnl_primitive_desc_t* desc) {
  const MemoryDesc::Pointer x = c.x->get(), weights = c.weights->get(), bias = pointer_of(c.bias), y = c.y->get();
  dnnl_convolution_desc_t operation;  // of a transposed convolution too
  dnnl_status_t status = dnnl_success;
  if (c.kind == ConvolutionOperation::Kind::filter_gradient)
    status = dnnl_dilated_convolution_backward_weights_desc_init(&operation, dnnl_convolution_direct, x, weights, bias, y, c.stride,
                                                                 c.dilation, c.pad_begin, c.pad_end);
  else if (c.kind == ConvolutionOperation::Kind::transposed)
    status = dnnl_dilated_deconvolution_forward_desc_init(&operation, dnnl_forward_inference, dnnl_deconvolution_direct, x, weights, bias,
                                                          y, c.stride, c.dilation, c.pad_begin, c.pad_end);
  else
    status = dnnl_dilated_convolution_forward_desc_init(&operation, dnnl_forward_inference, dnnl_convolution_direct, x, weights, bias, y,
                                                        c.stride, c.dilation, c.pad_begin, c.pad_end);
  return status == dnnl_success ? dnnl_primitive_desc_create(desc, &operation, attributes, engine, nullptr) : status;
}

inline dnnl_status_t create_desc(const ProductOperation& product, const_dnnl_primitive_attr_t attributes, dnnl_engine_t engine,
                                 dnnl_primitive_desc_t* desc) {
  dnnl_matmul_desc_t operation;
  const dnnl_status_t status =
      dnnl_matmul_desc_init(&operation, product.a->get(), product.b->get(), pointer_of(product.bias), product.y->get());
  return status == dnnl_success ? dnnl_primitive_desc_create(desc, &operation, attributes, engine, nullptr) : status;
}

inline dnnl_status_t append_sum(dnnl_post_ops_t post_ops) {
  return dnnl_post_ops_append_sum(post_ops, 1.0f);
}
inline dnnl_status_t append_eltwise(dnnl_post_ops_t post_ops, dnnl_alg_kind_t algorithm, float alpha, float beta) {
  return dnnl_post_ops_append_eltwise(post_ops, 1.0f, algorithm, alpha, beta);
}
inline dnnl_status_t set_data(dnnl_memory_t memory, const void* data, dnnl_stream_t stream) {
  return dnnl_memory_set_data_handle_v2(memory, const_cast<void*>(data), stream);
}

#endif

}  // namespace heddle::cpu::onednn
