// The data of one kernel in a declaration, kept until the tables are built.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "heddle/abi.h"
#include "heddle/op/class_kernel.h"
#include "heddle/op/function.h"

namespace heddle {
namespace plugin {
namespace detail {

struct KernelData {
  const char* device = nullptr;
  const char* name = nullptr;
  std::vector<heddle_dtype_set> inputs, outputs;  // by port; empty: all that the schema allows
  uint32_t flags = 0;
  int32_t priority = 0;
  bool checks_arity = false;  // true for a plain function whose parameters must be exactly the operator's ports
  heddle_status (*create)(const heddle_create_context*, void**) = nullptr;
  heddle_status (*prepare)(heddle_prepare_context*) = nullptr;
  heddle_run_function run = nullptr;
  heddle_finish_function finish = nullptr;
  void (*destroy)(void*) = nullptr;
  heddle_status (*formats)(const heddle_create_context*, heddle_format* const*, uint32_t, uint32_t*) = nullptr;
  int32_t (*accepts_epilogue)(const heddle_create_context*) = nullptr;
  void (*abort)(const heddle_run_context*) = nullptr;
  heddle_status (*run_group)(const heddle_run_context* const*, uint32_t) = nullptr;
  // The functions that elementwise() puts in place of run and prepare; null for kernel classes.
  heddle_run_function run_elementwise = nullptr;
  heddle_status (*prepare_elementwise)(heddle_prepare_context*) = nullptr;
};

// True if kernels for this kind of device work in host memory; their prepare then checks that all tensors are there (check_host_memory).
inline bool is_host(const char* device) {
  return std::strcmp(device, "cpu") == 0;
}

template <auto F>
KernelData function_kernel(const char* device) {
  using Fn = Function<F>;
  KernelData k;
  k.device = device;
  k.checks_arity = !Fn::takes_context();
  if (Fn::has_state) k.create = Fn::create, k.destroy = Fn::destroy;
  if (is_host(device)) k.prepare = Fn::prepare_on_host;
  k.run = Fn::run;
  Fn::sets(k.inputs, k.outputs, std::make_index_sequence<Fn::count>());
  k.run_elementwise = Fn::run_elementwise;
  k.prepare_elementwise = is_host(device) ? Fn::template prepare_elementwise<true> : Fn::template prepare_elementwise<false>;
  return k;
}

template <class K>
KernelData class_kernel(const char* device, std::vector<heddle_dtype_set> input_sets, std::vector<heddle_dtype_set> output_sets) {
  using C = ClassKernel<K>;
  KernelData k;
  k.device = device;
  k.inputs = std::move(input_sets);
  k.outputs = std::move(output_sets);
  k.create = C::create;
  k.destroy = C::destroy;
  k.run = C::run;
  if (is_mover<K>::value) k.flags |= HEDDLE_KERNEL_MOVES_ONLY;
  if (is_host(device) && !is_mover<K>::value)
    k.prepare = C::template prepare<true>;
  else if (has_prepare<K>::value)
    k.prepare = C::template prepare<false>;
  if (has_start<K>::value) k.flags |= HEDDLE_KERNEL_ASYNC;
  if (has_abort<K>::value) k.abort = C::abort;
  if (has_run_group<K>::value) k.flags |= HEDDLE_KERNEL_GROUP, k.run_group = C::run_group;
  if (has_finish<K>::value) k.finish = C::finish;
  if (has_formats<K>::value) k.formats = C::formats;
  if (has_epilogue<K>::value) k.accepts_epilogue = C::accepts_epilogue;
  return k;
}

inline KernelData raw_kernel(const char* device, const heddle_kernel& functions) {
  KernelData k;
  k.device = device;
  k.create = functions.create;
  k.prepare = functions.prepare;
  k.run = functions.run;
  k.finish = functions.finish;
  k.destroy = functions.destroy;
  k.formats = functions.formats;
  k.accepts_epilogue = functions.accepts_epilogue;
  k.abort = functions.abort;
  k.run_group = functions.run_group;
  return k;
}

}  // namespace detail
}  // namespace plugin
}  // namespace heddle
