// Implements cuDNN: handles, the backend API, and the execution of plans, which is work of the handle's stream.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "standin/process.h"

namespace standin = heddle::cuda::standin;
using standin::BackendDescriptor;
using standin::Block;
using standin::CallKind;
using standin::CudnnHandle;
using standin::CudnnProblem;
using standin::Job;
using standin::Lock;
using standin::Process;
using standin::Rule;
using standin::Stream;
using standin::TensorInfo;
using standin::this_thread;

namespace {

thread_local std::string last_error;  // read by cudnnGetLastErrorString

cudnnStatus_t fail(cudnnStatus_t status, const std::string& text) {
  last_error = text;
  return status;
}
cudnnStatus_t broken(Process& process, Rule rule, const char* call, const std::string& text, cudnnStatus_t status) {
  process.rules.add(rule, std::string(call) + (text.empty() ? "" : ": " + text));
  return fail(status, text.empty() ? standin::rule_texts()[static_cast<size_t>(rule)].what : text);
}

template <class Body>
cudnnStatus_t cudnn_api(const char* name, CallKind kind, const Body& body) {
  Process& process = Process::get();
  Lock lock(process.mutex);
  if (standin::begin_call(process, name, kind) != cudaSuccess) {
    standin::end_call(process, cudaSuccess);
    return fail(CUDNN_STATUS_EXECUTION_FAILED_CUDART, "the device is lost");
  }
  int answer = 0;
  if (standin::fails_call(process, name, &answer)) return fail(static_cast<cudnnStatus_t>(answer), "as a test has said");
  return body(process, lock);
}

// Checks that the device that was current when a handle was made is current whenever it is used.
cudnnStatus_t check_handle(Process& process, cudnnHandle_t handle, const char* call, std::shared_ptr<CudnnHandle>* found) {
  *found = process.cudnn_handles.find(handle);
  if (!*found) return broken(process, Rule::cudnn_unknown_handle, call, "", CUDNN_STATUS_BAD_PARAM);
  if ((*found)->device != this_thread().device) return broken(process, Rule::cudnn_device, call, "", CUDNN_STATUS_BAD_PARAM);
  return CUDNN_STATUS_SUCCESS;
}

std::shared_ptr<BackendDescriptor> descriptor_of(Process& process, cudnnBackendDescriptor_t descriptor, const char* call) {
  std::shared_ptr<BackendDescriptor> found = process.cudnn_descriptors.find(descriptor);
  if (!found) broken(process, Rule::cudnn_unknown_descriptor, call, "", CUDNN_STATUS_BAD_PARAM);
  return found;
}

// Takes an attribute whose values are descriptors: each must be known and finalized.
cudnnStatus_t take_descriptors(Process& process, const char* call, BackendDescriptor::Attribute& attribute) {
  for (int64_t i = 0; i < attribute.count; ++i) {
    cudnnBackendDescriptor_t handle = nullptr;
    std::memcpy(&handle, attribute.bytes.data() + static_cast<size_t>(i) * sizeof(handle), sizeof(handle));
    std::shared_ptr<BackendDescriptor> value = descriptor_of(process, handle, call);
    if (!value) return CUDNN_STATUS_BAD_PARAM;
    if (!value->finalized) return broken(process, Rule::cudnn_not_finalized, call, "", CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    attribute.descriptors.push_back(std::move(value));
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t give_number(int64_t requested, int64_t* count, void* values, int64_t number) {
  *count = 1;
  if (requested >= 1 && values) *static_cast<int64_t*>(values) = number;
  return CUDNN_STATUS_SUCCESS;
}

// Writes engines or their configurations into descriptors that the caller made for them.
cudnnStatus_t give_engines(Process& process, const char* call, const BackendDescriptor& from, cudnnBackendDescriptorType_t type,
                           const std::vector<standin::EngineInfo>& engines, int64_t requested, int64_t* count, void* values) {
  *count = static_cast<int64_t>(engines.size());
  if (!values) return CUDNN_STATUS_SUCCESS;
  *count = std::min(*count, requested);
  for (int64_t i = 0; i < *count; ++i) {
    const std::shared_ptr<BackendDescriptor> to = descriptor_of(process, static_cast<cudnnBackendDescriptor_t*>(values)[i], call);
    if (!to) return CUDNN_STATUS_BAD_PARAM;
    if (to->type != type) return broken(process, Rule::cudnn_attribute, call, "descriptors of another type", CUDNN_STATUS_BAD_PARAM);
    to->graph = from.graph;
    to->engine = engines[static_cast<size_t>(i)];
    to->finalized = true;
  }
  return CUDNN_STATUS_SUCCESS;
}

// ---------------------------------------------------------------- execution

struct Binding {
  std::map<int64_t, void*> addresses;
  std::vector<Block*> blocks;
  std::byte* workspace = nullptr;
};

cudnnStatus_t bind_tensor(Process& process, const char* call, const TensorInfo& tensor, int device, Binding& binding) {
  const auto found = binding.addresses.find(tensor.id);
  const std::string name = "tensor " + std::to_string(tensor.id);
  if (found == binding.addresses.end()) return broken(process, Rule::cudnn_variant_pack, call, name, CUDNN_STATUS_BAD_PARAM);
  const auto* const data = static_cast<const std::byte*>(found->second);
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(tensor.alignment) != 0)
    return broken(process, Rule::cudnn_alignment, call, name, CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
  Block* const block = process.memory.block_at(data);
  if (tensor.is_by_value)
    return block ? broken(process, Rule::cudnn_memory, call, name + " is by value", CUDNN_STATUS_EXECUTION_FAILED) : CUDNN_STATUS_SUCCESS;
  if (!block || block->device != device || data + tensor.bytes() > block->data + block->bytes)
    return broken(process, Rule::cudnn_memory, call, name, CUDNN_STATUS_EXECUTION_FAILED);
  binding.blocks.push_back(block);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t bind(Process& process, const char* call, const BackendDescriptor& plan, const BackendDescriptor& pack, int device,
                   Binding& binding) {
  const std::vector<int64_t> ids = pack.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  for (size_t i = 0; i < ids.size(); ++i)
    binding.addresses[ids[i]] = pack.value<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, static_cast<int64_t>(i));
  const std::vector<TensorInfo> tensors = plan.graph->tensors();
  for (const TensorInfo& tensor : tensors) {
    const cudnnStatus_t status = bind_tensor(process, call, tensor, device, binding);
    if (status != CUDNN_STATUS_SUCCESS) return status;
  }
  if (ids.size() != tensors.size())
    return broken(process, Rule::cudnn_variant_pack, call, "ids of tensors that are not the plan's", CUDNN_STATUS_BAD_PARAM);
  if (plan.engine.workspace_bytes == 0) return CUDNN_STATUS_SUCCESS;
  if (pack.has(CUDNN_ATTR_VARIANT_PACK_WORKSPACE)) binding.workspace = pack.value<std::byte*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  Block* const block = binding.workspace ? process.memory.block_at(binding.workspace) : nullptr;
  if (!block || binding.workspace + plan.engine.workspace_bytes > block->data + block->bytes)
    return broken(process, Rule::cudnn_workspace, call, "", CUDNN_STATUS_BAD_PARAM);
  binding.blocks.push_back(block);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t execute(Process& process, const char* call, const CudnnHandle& handle, const std::shared_ptr<BackendDescriptor>& plan,
                      const BackendDescriptor& pack) {
  const std::shared_ptr<Stream> stream = process.stream_of(handle.stream, call);
  if (!stream) return fail(CUDNN_STATUS_EXECUTION_FAILED, "there is no such stream");
  Binding binding;
  const cudnnStatus_t status = bind(process, call, *plan, pack, handle.device, binding);
  if (status != CUDNN_STATUS_SUCCESS) return status;
  process.run.launch(process.rules);
  const bool fails = process.faults.strikes(process.faults.launch);
  const cudaError_t error = fails ? process.faults.launch_error : cudaSuccess;
  process.engine.enqueue(*stream, Job::Kind::work, [error, plan, addresses = binding.addresses, workspace = binding.workspace] {
    if (error != cudaSuccess) return error;
    if (workspace) std::memset(workspace, 0xab, plan->engine.workspace_bytes);
    standin::compute(*plan->graph, plan->engine, addresses);
    return cudaSuccess;
  });
  for (Block* const block : binding.blocks) process.use(*block, *stream, call);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace

size_t cudnnGetVersion() {
  return CUDNN_VERSION;
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (CUDNN_STATUS_CATEGORY(status)) {
    case 0:
      return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_BAD_PARAM:
      return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    default:
      return "CUDNN_STATUS_EXECUTION_FAILED";
  }
}
void cudnnGetLastErrorString(char* message, size_t bytes) {
  std::snprintf(message, bytes, "%s", last_error.c_str());
  last_error.clear();
}

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    process.run.note(Rule::allocates, "cudnnCreate");
    *handle = process.cudnn_handles.add(std::make_shared<CudnnHandle>(CudnnHandle{this_thread().device, nullptr}));
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    std::shared_ptr<CudnnHandle> found;
    const cudnnStatus_t status = check_handle(process, handle, "cudnnDestroy", &found);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    process.run.note(Rule::synchronises, "cudnnDestroy");
    process.cudnn_handles.remove(handle);
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    std::shared_ptr<CudnnHandle> found;
    const cudnnStatus_t status = check_handle(process, handle, "cudnnSetStream", &found);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const std::shared_ptr<Stream> known = process.stream_of(stream, "cudnnSetStream");
    if (!known) return fail(CUDNN_STATUS_BAD_PARAM, "there is no such stream");
    if (known->device != found->device) return broken(process, Rule::cudnn_device, "cudnnSetStream", "", CUDNN_STATUS_BAD_PARAM);
    found->stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* descriptor) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    auto made = std::make_shared<BackendDescriptor>();
    made->type = type;
    *descriptor = process.cudnn_descriptors.add(std::move(made));
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    if (!descriptor_of(process, descriptor, "cudnnBackendDestroyDescriptor")) return CUDNN_STATUS_BAD_PARAM;
    process.cudnn_descriptors.remove(descriptor);
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                       int64_t count, const void* values) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    constexpr const char* call = "cudnnBackendSetAttribute";
    const std::shared_ptr<BackendDescriptor> descriptor = descriptor_of(process, handle, call);
    if (!descriptor) return CUDNN_STATUS_BAD_PARAM;
    if (descriptor->finalized) return broken(process, Rule::cudnn_set_after_finalize, call, "", CUDNN_STATUS_NOT_INITIALIZED);
    if (!standin::may_set(descriptor->type, name, type, count) || (count > 0 && !values))
      return broken(process, Rule::cudnn_attribute, call, "attribute " + std::to_string(name), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
    BackendDescriptor::Attribute attribute;
    attribute.type = type;
    attribute.count = count;
    const auto* const first = static_cast<const std::byte*>(values);
    if (count > 0) attribute.bytes.assign(first, first + static_cast<size_t>(count) * standin::element_bytes(type));
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      const cudnnStatus_t status = take_descriptors(process, call, attribute);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    if (type == CUDNN_TYPE_HANDLE) {
      std::shared_ptr<CudnnHandle> found;
      const cudnnStatus_t status = check_handle(process, *static_cast<const cudnnHandle_t*>(values), call, &found);
      if (status != CUDNN_STATUS_SUCCESS) return status;
    }
    descriptor->attributes[name] = std::move(attribute);
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle, cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested, int64_t* count, void* values) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    constexpr const char* call = "cudnnBackendGetAttribute";
    const std::shared_ptr<BackendDescriptor> d = descriptor_of(process, handle, call);
    if (!d) return CUDNN_STATUS_BAD_PARAM;
    if (!d->finalized) return broken(process, Rule::cudnn_not_finalized, call, "", CUDNN_STATUS_NOT_INITIALIZED);
    const auto asks = [&](cudnnBackendDescriptorType_t of, cudnnBackendAttributeName_t attribute, cudnnBackendAttributeType_t as) {
      return d->type == of && name == attribute && type == as;
    };
    if (asks(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR))
      return give_engines(process, call, *d, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, d->engines, requested, count, values);
    if (asks(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR))
      return give_engines(process, call, *d, CUDNN_BACKEND_ENGINE_DESCRIPTOR, {d->engine}, requested, count, values);
    if (asks(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64))
      return give_number(requested, count, values, d->engine.index);
    if (asks(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64))
      return give_number(requested, count, values, static_cast<int64_t>(d->engine.workspace_bytes));
    if (asks(CUDNN_BACKEND_ENGINE_DESCRIPTOR, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE)) {
      *count = static_cast<int64_t>(d->engine.notes.size());
      std::copy_n(d->engine.notes.begin(), std::min(*count, requested), static_cast<cudnnBackendNumericalNote_t*>(values));
      return CUDNN_STATUS_SUCCESS;
    }
    return broken(process, Rule::cudnn_attribute, call, "attribute " + std::to_string(name), CUDNN_STATUS_BAD_PARAM);
  });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t handle) {
  return cudnn_api(__func__, CallKind::other, [&](Process& process, Lock&) {
    constexpr const char* call = "cudnnBackendFinalize";
    const std::shared_ptr<BackendDescriptor> descriptor = descriptor_of(process, handle, call);
    if (!descriptor) return CUDNN_STATUS_BAD_PARAM;
    if (descriptor->finalized) return broken(process, Rule::cudnn_set_after_finalize, call, "", CUDNN_STATUS_BAD_PARAM);
    if (const char* const missing = standin::missing_attribute(*descriptor))
      return broken(process, Rule::cudnn_missing_attribute, call, missing, CUDNN_STATUS_BAD_PARAM);
    const CudnnProblem problem = standin::finalize(*descriptor);
    if (problem.rule) return broken(process, *problem.rule, call, problem.text, problem.status);
    if (problem.status != CUDNN_STATUS_SUCCESS) return fail(problem.status, problem.text);
    descriptor->finalized = true;
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return cudnn_api(__func__, CallKind::work, [&](Process& process, Lock&) {
    constexpr const char* call = "cudnnBackendExecute";
    std::shared_ptr<CudnnHandle> found;
    const cudnnStatus_t status = check_handle(process, handle, call, &found);
    if (status != CUDNN_STATUS_SUCCESS) return status;
    const std::shared_ptr<BackendDescriptor> what = descriptor_of(process, plan, call), where = descriptor_of(process, pack, call);
    if (!what || !where) return CUDNN_STATUS_BAD_PARAM;
    if (!what->finalized || !where->finalized)
      return broken(process, Rule::cudnn_not_finalized, call, "", CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED);
    return execute(process, call, *found, what, *where);
  });
}
