// Implements cuBLASLt: descriptions, the choice of an algorithm, and products. Calls that cuBLASLt refuses are refused with the same
// status; what it leaves undefined is a rule (rules.inc).
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "cublaslt_objects.h"
#include "standin/process.h"

namespace standin = heddle::cuda::standin;
using standin::Block;
using standin::bytes_of;
using standin::CallKind;
using standin::Job;
using standin::Lock;
using standin::LtAlgorithm;
using standin::LtDescription;
using standin::LtLayout;
using standin::LtPreference;
using standin::LtProduct;
using standin::Process;
using standin::Rule;

namespace {

// The common frame of each function, as standin::api is for the runtime's.
template <class Body>
cublasStatus_t lt(const char* name, CallKind kind, const Body& body) {
  Process& process = Process::get();
  Lock lock(process.mutex);
  if (standin::begin_call(process, name, kind) != cudaSuccess) {
    standin::end_call(process, cudaSuccess);
    return CUBLAS_STATUS_EXECUTION_FAILED;
  }
  int answer = 0;
  const cublasStatus_t status = standin::fails_call(process, name, &answer) ? static_cast<cublasStatus_t>(answer) : body(process);
  standin::end_call(process, cudaSuccess);
  return status;
}

template <class Object, class Handle>
Object* object_of(Process& process, Handle handle, const char* call) {
  auto* const object = reinterpret_cast<Object*>(handle);
  if (object && object->mark == Object::made) return object;
  process.rules.add(Rule::lt_unknown, call);
  return nullptr;
}

template <class Object, class Opaque>
void fill(Opaque* memory, const Object& object) {
  static_assert(sizeof(Object) <= sizeof(Opaque));
  std::memset(static_cast<void*>(memory), 0, sizeof(Opaque));
  std::memcpy(static_cast<void*>(memory), &object, sizeof(Object));
}

template <class Object, class Opaque>
cublasStatus_t make(Process& process, Opaque** handle, const Object& object) {
  const auto made = std::make_shared<Opaque>();
  fill(made.get(), object);
  process.lt_objects.emplace(made.get(), made);
  *handle = made.get();
  return CUBLAS_STATUS_SUCCESS;
}

template <class Object, class Opaque>
cublasStatus_t destroy(Process& process, Opaque* handle, const char* call) {
  Object* const object = object_of<Object>(process, handle, call);
  if (!object) return CUBLAS_STATUS_INVALID_VALUE;
  process.lt_objects.erase(handle);
  return CUBLAS_STATUS_SUCCESS;
}

// One attribute, with the size that the header gives.
struct Attribute {
  Process& process;
  const char* call;
  const void* value;
  size_t bytes;
  template <class Value>
  cublasStatus_t to(Value* member) const {
    if (!value || bytes != sizeof(Value)) return process.rules.add(Rule::lt_attribute, call), CUBLAS_STATUS_INVALID_VALUE;
    std::memcpy(static_cast<void*>(member), value, sizeof(Value));
    return CUBLAS_STATUS_SUCCESS;
  }
};

uint64_t mixed(uint64_t hash, uint64_t word) {
  return (hash ^ word) * 0x9e3779b97f4a7c15u + (hash >> 29);
}

// Returns a hash of the shape that an algorithm is chosen for.
uint64_t shape_of(const LtDescription& d, const LtLayout& a, const LtLayout& b, const LtLayout& c, const LtLayout& y) {
  uint64_t hash = 0;
  for (const uint64_t word :
       {uint64_t{d.compute}, uint64_t{d.scale}, uint64_t{d.transpose_a}, uint64_t{d.transpose_b}, uint64_t{d.epilogue}})
    hash = mixed(hash, word);
  for (const LtLayout* layout : {&a, &b, &c, &y})
    for (const uint64_t word : {uint64_t{layout->type}, layout->rows, layout->columns, static_cast<uint64_t>(layout->leading),
                                static_cast<uint64_t>(layout->step), static_cast<uint64_t>(layout->batch)})
      hash = mixed(hash, word);
  return hash;
}

// Returns true for the rows of the table of cublasLtMatmul in which all matrices have one type.
bool is_supported(const LtDescription& d, cudaDataType type) {
  if (type == CUDA_R_64F) return d.compute == CUBLAS_COMPUTE_64F && d.scale == CUDA_R_64F;
  if (d.scale != CUDA_R_32F || bytes_of(type) == 0) return false;
  return d.compute == CUBLAS_COMPUTE_32F || (type == CUDA_R_32F && d.compute == CUBLAS_COMPUTE_32F_FAST_TF32);
}

cublasStatus_t check(Process& process, const LtDescription& d, const LtLayout& a, const LtLayout& b, const LtLayout& c, const LtLayout& y,
                     const char* call) {
  const auto wrong = [&](Rule rule, const std::string& what) {
    process.rules.add(rule, std::string(call) + ": " + what);
    return CUBLAS_STATUS_INVALID_VALUE;
  };
  const bool a_over = d.transpose_a != CUBLAS_OP_N, b_over = d.transpose_b != CUBLAS_OP_N;
  const uint64_t m = a_over ? a.columns : a.rows, k = a_over ? a.rows : a.columns;
  if ((b_over ? b.columns : b.rows) != k || y.rows != m || y.columns != (b_over ? b.rows : b.columns) || c.rows != y.rows ||
      c.columns != y.columns)
    return wrong(Rule::lt_extents, "extents that do not fit");
  for (const LtLayout* layout : {&a, &b, &c, &y}) {
    if (layout->batch != y.batch) return wrong(Rule::lt_extents, "batches of different lengths");
    if (layout->leading < static_cast<int64_t>(layout->rows)) return wrong(Rule::lt_leading, "columns that overlap");
    if (layout->rows == 0 || layout->columns == 0) return wrong(Rule::lt_extents, "no elements");
  }
  for (const LtLayout* layout : {&a, &b, &c})
    if (layout->type != y.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  return is_supported(d, y.type) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_SUPPORTED;
}

uint64_t extent_of(const LtLayout& layout) {
  const auto last = static_cast<uint64_t>(layout.leading) * (layout.columns - 1) + layout.rows;
  return (static_cast<uint64_t>(layout.step) * static_cast<uint64_t>(layout.batch - 1) + last) * bytes_of(layout.type);
}

// The memory that a product reads and writes, all of it on the stream's device.
class Memories {
 public:
  Memories(Process& process, const standin::Stream& stream, const char* call) : process_(process), stream_(stream), call_(call) {}
  bool add(const void* address, uint64_t bytes, uint64_t alignment, const char* what) {
    Block* const block = process_.memory.block_at(address);
    if (!block) return broken(Rule::not_device_memory, what);
    if (block->device != stream_.device) return broken(Rule::memory_of_other_device, what);
    if (bytes > block->bytes - static_cast<uint64_t>(static_cast<const std::byte*>(address) - block->data))
      return broken(Rule::lt_beyond, what);
    if (reinterpret_cast<uintptr_t>(address) % std::max<uint64_t>(alignment, 1) != 0) return broken(Rule::lt_alignment, what);
    blocks_.push_back(block);
    return true;
  }
  void use() {
    for (Block* const block : blocks_) process_.use(*block, stream_, call_);
  }
  bool broken(Rule rule, const char* what) {
    process_.rules.add(rule, std::string(call_) + ": " + what);
    return false;
  }

 private:
  Process& process_;
  const standin::Stream& stream_;
  const char* const call_;
  std::vector<Block*> blocks_;
};

bool overlap(const void* a, uint64_t a_bytes, const void* b, uint64_t b_bytes) {
  const auto first = reinterpret_cast<uintptr_t>(a), second = reinterpret_cast<uintptr_t>(b);
  return first < second ? second - first < a_bytes : first - second < b_bytes;
}

bool check_memory(Memories& memories, const LtProduct& p, const LtAlgorithm& algorithm, void* workspace, size_t workspace_bytes) {
  if (!memories.add(p.at_a, extent_of(p.a), algorithm.alignment[0], "a")) return false;
  if (!memories.add(p.at_b, extent_of(p.b), algorithm.alignment[1], "b")) return false;
  if (p.beta != 0 && !memories.add(p.at_c, extent_of(p.c), algorithm.alignment[2], "c")) return false;
  if (!memories.add(p.at_d, extent_of(p.d), algorithm.alignment[3], "d")) return false;
  if (p.description.has_bias()) {
    if (!p.description.bias) return memories.broken(Rule::lt_bias, "no address of the bias");
    if (!memories.add(p.description.bias, p.d.rows * bytes_of(p.d.type), bytes_of(p.d.type), "bias")) return false;
  }
  if (workspace_bytes < algorithm.workspace) return memories.broken(Rule::lt_workspace, "less than the algorithm takes");
  if (workspace_bytes > 0 && !memories.add(workspace, workspace_bytes, 16, "workspace")) return false;
  for (const auto& [at, bytes] : {std::pair(p.at_a, extent_of(p.a)), std::pair(p.at_b, extent_of(p.b))})
    if (overlap(p.at_d, extent_of(p.d), at, bytes)) return memories.broken(Rule::lt_overlap, "d lies over an operand");
  const bool in_place = p.at_c == p.at_d;
  if (p.beta != 0 && !in_place && overlap(p.at_d, extent_of(p.d), p.at_c, extent_of(p.c)))
    return memories.broken(Rule::lt_overlap, "d lies over a part of c");
  return true;
}

}  // namespace

size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}
const char* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    default:
      return "another cublasStatus_t";
  }
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    process.run.note(Rule::allocates, "cublasLtCreate");
    return *handle = process.lt_handles.add(std::make_shared<int>(standin::this_thread().device)), CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    if (!process.lt_handles.find(handle)) return process.rules.add(Rule::lt_unknown, "cublasLtDestroy"), CUBLAS_STATUS_NOT_INITIALIZED;
    process.run.note(Rule::synchronises, "cublasLtDestroy");
    return process.lt_handles.remove(handle), CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* handle, cublasComputeType_t compute, cudaDataType_t scale) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    LtDescription made;
    made.compute = compute;
    made.scale = scale;
    return make(process, handle, made);
  });
}
cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t description, size_t bytes, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    if (bytes != sizeof(*description)) return process.rules.add(Rule::lt_attribute, "cublasLtMatmulDescInit"), CUBLAS_STATUS_INVALID_VALUE;
    LtDescription made;
    made.compute = compute;
    made.scale = scale;
    return fill(description, made), CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t description) {
  return lt(__func__, CallKind::other,
            [&](Process& process) { return destroy<LtDescription>(process, description, "cublasLtMatmulDescDestroy"); });
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t description, cublasLtMatmulDescAttributes_t attribute, const void* value,
                                              size_t bytes) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    constexpr const char* call = "cublasLtMatmulDescSetAttribute";
    LtDescription* const d = object_of<LtDescription>(process, description, call);
    if (!d) return CUBLAS_STATUS_INVALID_VALUE;
    const Attribute given = {process, call, value, bytes};
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return given.to(&d->transpose_a);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return given.to(&d->transpose_b);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return given.to(&d->epilogue);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return given.to(&d->bias);
      default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  });
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows, uint64_t columns,
                                          int64_t leading) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    LtLayout made;
    made.type = type;
    made.rows = rows;
    made.columns = columns;
    made.leading = leading;
    return make(process, layout, made);
  });
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return lt(__func__, CallKind::other, [&](Process& process) { return destroy<LtLayout>(process, layout, "cublasLtMatrixLayoutDestroy"); });
}
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout, cublasLtMatrixLayoutAttribute_t attribute, const void* value,
                                                size_t bytes) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    constexpr const char* call = "cublasLtMatrixLayoutSetAttribute";
    LtLayout* const l = object_of<LtLayout>(process, layout, call);
    if (!l) return CUBLAS_STATUS_INVALID_VALUE;
    const Attribute given = {process, call, value, bytes};
    switch (attribute) {
      case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
        return given.to(&l->batch);
      case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
        return given.to(&l->step);
      default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  });
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return lt(__func__, CallKind::other, [&](Process& process) { return make(process, preference, LtPreference()); });
}
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return lt(__func__, CallKind::other,
            [&](Process& process) { return destroy<LtPreference>(process, preference, "cublasLtMatmulPreferenceDestroy"); });
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference, cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* value, size_t bytes) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    constexpr const char* call = "cublasLtMatmulPreferenceSetAttribute";
    LtPreference* const p = object_of<LtPreference>(process, preference, call);
    if (!p) return CUBLAS_STATUS_INVALID_VALUE;
    const Attribute given = {process, call, value, bytes};
    switch (attribute) {
      case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return given.to(&p->workspace);
      case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return given.to(&p->schemes);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
        return given.to(&p->alignment[0]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
        return given.to(&p->alignment[1]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
        return given.to(&p->alignment[2]);
      case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
        return given.to(&p->alignment[3]);
      default:
        return CUBLAS_STATUS_NOT_SUPPORTED;
    }
  });
}

// Offers one algorithm, which takes a workspace for two parts of each sum if sums are long and the workspace may be that large.
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, cublasLtMatrixLayout_t a,
                                              cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference, int wanted, cublasLtMatmulHeuristicResult_t* results,
                                              int* count) {
  return lt(__func__, CallKind::other, [&](Process& process) {
    constexpr const char* call = "cublasLtMatmulAlgoGetHeuristic";
    *count = 0;
    if (!process.lt_handles.find(handle)) return process.rules.add(Rule::lt_unknown, call), CUBLAS_STATUS_NOT_INITIALIZED;
    const auto* const y = object_of<LtDescription>(process, description, call);
    const LtLayout* layouts[4] = {};
    const cublasLtMatrixLayout_t given[] = {a, b, c, d};
    for (int i = 0; i < 4; ++i)
      if (!(layouts[i] = object_of<LtLayout>(process, given[i], call))) return CUBLAS_STATUS_INVALID_VALUE;
    const auto* const p = object_of<LtPreference>(process, preference, call);
    if (!y || !p || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = check(process, *y, *layouts[0], *layouts[1], *layouts[2], *layouts[3], call);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const uint64_t depth = y->transpose_a != CUBLAS_OP_N ? layouts[0]->rows : layouts[0]->columns;
    const uint64_t parts = 2 * sizeof(float) * layouts[3]->rows * layouts[3]->columns * static_cast<uint64_t>(layouts[3]->batch);
    LtAlgorithm algorithm;
    std::copy(p->alignment, p->alignment + 4, algorithm.alignment);
    algorithm.workspace = depth >= 64 && parts <= p->workspace && (p->schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) ? parts : 0;
    algorithm.of = shape_of(*y, *layouts[0], *layouts[1], *layouts[2], *layouts[3]);
    results[0] = {};
    fill(&results[0].algo, algorithm);
    results[0].workspaceSize = algorithm.workspace;
    results[0].state = CUBLAS_STATUS_SUCCESS;
    return *count = 1, CUBLAS_STATUS_SUCCESS;
  });
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t description, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d, cublasLtMatrixLayout_t d_layout,
                              const cublasLtMatmulAlgo_t* chosen, void* workspace, size_t workspace_bytes, cudaStream_t stream_handle) {
  return lt(__func__, CallKind::work, [&](Process& process) {
    constexpr const char* call = "cublasLtMatmul";
    if (!process.lt_handles.find(handle)) return process.rules.add(Rule::lt_unknown, call), CUBLAS_STATUS_NOT_INITIALIZED;
    const auto stream = process.stream_of(stream_handle, call);
    const auto* const y = object_of<LtDescription>(process, description, call);
    const auto* const la = object_of<LtLayout>(process, a_layout, call);
    const auto* const lb = object_of<LtLayout>(process, b_layout, call);
    const auto* const lc = object_of<LtLayout>(process, c_layout, call);
    const auto* const ld = object_of<LtLayout>(process, d_layout, call);
    if (!stream || !y || !la || !lb || !lc || !ld || !alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    if (stream->device != standin::this_thread().device || *process.lt_handles.find(handle) != stream->device)
      return process.rules.add(Rule::wrong_device, call), CUBLAS_STATUS_INVALID_VALUE;
    const cublasStatus_t status = check(process, *y, *la, *lb, *lc, *ld, call);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    const auto* const algorithm = object_of<const LtAlgorithm>(process, chosen, call);
    if (!algorithm) return CUBLAS_STATUS_INVALID_VALUE;
    if (algorithm->of != shape_of(*y, *la, *lb, *lc, *ld)) return process.rules.add(Rule::lt_algorithm, call), CUBLAS_STATUS_INVALID_VALUE;
    LtProduct p = {*y, *la, *lb, *lc, *ld, a, b, c, d, 1, 0};
    const bool wide = y->scale == CUDA_R_64F;
    p.alpha = wide ? *static_cast<const double*>(alpha) : double{*static_cast<const float*>(alpha)};
    p.beta = wide ? *static_cast<const double*>(beta) : double{*static_cast<const float*>(beta)};
    Memories memories(process, *stream, call);
    if (!check_memory(memories, p, *algorithm, workspace, workspace_bytes)) return CUBLAS_STATUS_INVALID_VALUE;
    process.run.launch(process.rules);
    const bool fails = process.faults.strikes(process.faults.launch);
    const cudaError_t error = fails ? process.faults.launch_error : cudaSuccess;
    process.engine.enqueue(*stream, Job::Kind::work, [=] {
      if (error != cudaSuccess) return error;
      if (workspace_bytes > 0) std::memset(workspace, 0xff, workspace_bytes);
      return standin::compute(p), cudaSuccess;
    });
    return memories.use(), CUBLAS_STATUS_SUCCESS;
  });
}
