// Descriptors of oneDNN. See onednn.h.
#include "onednn/onednn.h"

#include <sys/mman.h>

// Functions of the OpenMP runtime that libdnnl itself is linked to; omp.h would bring the compiler's own, which may be another one.
extern "C" {
int omp_get_max_threads(void);
void omp_set_num_threads(int);
}

namespace heddle::cpu::onednn {
namespace {

std::string status_name(dnnl_status_t status) {
  switch (status) {
    case dnnl_out_of_memory:
      return "out of memory";
    case dnnl_invalid_arguments:
      return "invalid arguments";
    case dnnl_unimplemented:
      return "not implemented";
    default:
      return "status " + std::to_string(static_cast<int>(status));
  }
}

using Engine = Handle<dnnl_engine_t, dnnl_engine_destroy>;
using AttributesHandle = Handle<dnnl_primitive_attr_t, dnnl_primitive_attr_destroy>;

Status create_attributes(AttributesHandle* attributes) {
  HEDDLE_DNNL_CHECK("attributes", dnnl_primitive_attr_create(attributes->out()));
  HEDDLE_DNNL_CHECK("scratchpad mode", dnnl_primitive_attr_set_scratchpad_mode(attributes->get(), dnnl_scratchpad_mode_user));
  return {};
}

}  // namespace

Status failure(const char* what, dnnl_status_t status) {
  const heddle_status code = status == dnnl_out_of_memory ? HEDDLE_ERROR_OUT_OF_MEMORY : HEDDLE_ERROR_INTERNAL;
  return {code, std::string("oneDNN: ") + what + ": " + status_name(status)};
}

SerialSection::SerialSection() : before_(omp_get_max_threads()) {
  if (before_ != 1) omp_set_num_threads(1);
}
SerialSection::~SerialSection() {
  if (before_ != 1) omp_set_num_threads(before_);
}

dnnl_engine_t engine() {
  static const Engine engine = [] {
    Engine created;
    dnnl_engine_create(created.out(), dnnl_cpu, 0);  // a failure leaves null, which later calls report
    return created;
  }();
  return engine.get();
}

Status describe(const std::vector<int64_t>& dims, const std::vector<int64_t>& strides, MemoryDesc* desc) {
  HEDDLE_DNNL_CHECK("memory descriptor", desc->set_strides(dims, strides.empty() ? nullptr : strides.data()));
  return {};
}

Status describe_channels_last(const std::vector<int64_t>& dims, MemoryDesc* desc) {
  std::vector<int64_t> strides(dims.size());
  strides[1] = 1;
  int64_t stride = dims[1];
  for (size_t i = dims.size() - 1; i >= 2; --i) {
    strides[i] = stride;
    stride *= dims[i];
  }
  strides[0] = stride;
  return describe(dims, strides, desc);
}

Status describe_any(const std::vector<int64_t>& dims, MemoryDesc* desc) {
  HEDDLE_DNNL_CHECK("memory descriptor", desc->set_any(dims));
  return {};
}

uint64_t bytes_of(const MemoryDesc& desc) {
  return dnnl_memory_desc_get_size(desc.get());
}

std::string key_of(const MemoryDesc& desc) {
  std::string key = "onednn";
  desc.for_each_number([&key](int64_t number) { key += "," + std::to_string(number); });
  return key;
}

Status PostOps::create() {
  HEDDLE_DNNL_CHECK("post-ops", dnnl_post_ops_create(handle_.out()));
  return {};
}
Status PostOps::sum() {
  HEDDLE_DNNL_CHECK("post-op sum", append_sum(handle_.get()));
  return {};
}
Status PostOps::eltwise(dnnl_alg_kind_t algorithm, float alpha, float beta) {
  HEDDLE_DNNL_CHECK("post-op eltwise", append_eltwise(handle_.get(), algorithm, alpha, beta));
  return {};
}
Status PostOps::binary(dnnl_alg_kind_t algorithm, const MemoryDesc& operand) {
  HEDDLE_DNNL_CHECK("post-op binary", dnnl_post_ops_append_binary(handle_.get(), algorithm, operand.get()));
  return {};
}

template <class Operation>
Status PrimitiveDesc::create(const Operation& operation, const PostOps* post_ops) {
  AttributesHandle attributes;
  HEDDLE_PLUGIN_CHECK(create_attributes(&attributes));
  if (post_ops) HEDDLE_DNNL_CHECK("post-ops", dnnl_primitive_attr_set_post_ops(attributes.get(), post_ops->get()));
  handle_ = {};
  HEDDLE_DNNL_CHECK("primitive descriptor", create_desc(operation, attributes.get(), engine(), handle_.out()));
  return {};
}
template Status PrimitiveDesc::create(const ConvolutionOperation& operation, const PostOps* post_ops);
template Status PrimitiveDesc::create(const ProductOperation& operation, const PostOps* post_ops);

Status PrimitiveDesc::create_reorder(const MemoryDesc& source, const MemoryDesc& target) {
  AttributesHandle attributes;
  HEDDLE_PLUGIN_CHECK(create_attributes(&attributes));
  handle_ = {};
  HEDDLE_DNNL_CHECK("reorder descriptor",
                    dnnl_reorder_primitive_desc_create(handle_.out(), source.get(), engine(), target.get(), engine(), attributes.get()));
  return {};
}

MemoryDesc PrimitiveDesc::query(dnnl_query_t what) const {
  return MemoryDesc(dnnl_primitive_desc_query_md(handle_.get(), what, 0));
}

std::string PrimitiveDesc::implementation() const {
  const char* text = nullptr;
  if (dnnl_primitive_desc_query(handle_.get(), dnnl_query_impl_info_str, 0, &text) != dnnl_success || !text) return "unknown";
  return text;
}

Status create_primitive(Primitive& primitive, const_dnnl_primitive_desc_t desc) {
  // If there is no memory for a primitive's code, oneDNN 2.7 writes the code through a null pointer: check for memory first.
  constexpr size_t room = size_t{4} << 20;
  void* const probe = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe == MAP_FAILED) return {HEDDLE_ERROR_OUT_OF_MEMORY, "no memory for oneDNN's code"};
  ::munmap(probe, room);
  HEDDLE_DNNL_CHECK("primitive", dnnl_primitive_create(primitive.out(), desc));
  return {};
}

Status copy_once(const MemoryDesc& source_desc, const void* source, const MemoryDesc& target_desc, void* target) {
  const SerialSection serial;
  Stream stream;
  Memory from, to;
  Primitive reorder;
  Handle<dnnl_primitive_desc_t, dnnl_primitive_desc_destroy> desc;
  HEDDLE_DNNL_CHECK("stream", dnnl_stream_create(stream.out(), engine(), dnnl_stream_default_flags));
  HEDDLE_DNNL_CHECK("memory", dnnl_memory_create(from.out(), source_desc.get(), engine(), const_cast<void*>(source)));
  HEDDLE_DNNL_CHECK("memory", dnnl_memory_create(to.out(), target_desc.get(), engine(), target));
  HEDDLE_DNNL_CHECK("reorder descriptor",
                    dnnl_reorder_primitive_desc_create(desc.out(), source_desc.get(), engine(), target_desc.get(), engine(), nullptr));
  HEDDLE_PLUGIN_CHECK(create_primitive(reorder, desc.get()));
  const dnnl_exec_arg_t arguments[] = {{DNNL_ARG_FROM, from.get()}, {DNNL_ARG_TO, to.get()}};
  HEDDLE_DNNL_CHECK("reorder", dnnl_primitive_execute(reorder.get(), stream.get(), 2, arguments));
  HEDDLE_DNNL_CHECK("reorder", dnnl_stream_wait(stream.get()));
  return {};
}

}  // namespace heddle::cpu::onednn
