// What cuDNN's handles and backend descriptors are here. A descriptor holds its attributes as they were set, and knows from the table of
// cudnn_schema.inc which there may be; what is made of them when it is finalized lies beside them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cuda/standin/exports.h"
#include "cuda/standin/rules.h"

namespace heddle::cuda::standin {

struct CudnnHandle {
  int device = 0;  // that was current when it was made
  cudaStream_t stream = nullptr;
};

struct TensorInfo {
  int64_t id = 0, alignment = 1;
  std::vector<int64_t> dims, strides;
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  bool is_virtual = false;
  bool is_by_value = false;  // lies on the host
  int64_t element_count() const;
  // From the first to behind the last one.
  uint64_t bytes() const;
};

struct OperationInfo {
  enum class Kind : uint8_t { convolution, gradient_of_data, pointwise, attention };
  Kind kind = Kind::pointwise;
  TensorInfo x, w, y;        // of a gradient: w and y are read, x is written; of attention: query, key, output
  TensorInfo value, factor;  // of attention
  bool has_factor = false;
  std::vector<int64_t> stride, dilation, pad_begin, pad_end;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  bool has_b = false;  // then it is w
  double lower = 0, upper = 0, slope = 0;
  bool has_upper = false;

  const TensorInfo& written() const { return kind == Kind::gradient_of_data ? x : y; }
  std::vector<const TensorInfo*> read() const;
};

struct GraphInfo {
  std::vector<OperationInfo> operations;
  // Those that are no virtual ones, each once.
  std::vector<TensorInfo> tensors() const;
};

struct EngineInfo {
  int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  uint64_t workspace_bytes = 0;
  bool works = true;     // its plans can be finalized
  bool narrows = false;  // reads f32 with ten bits behind the point
};

struct BackendDescriptor {
  struct Attribute {
    cudnnBackendAttributeType_t type = CUDNN_TYPE_INT64;
    int64_t count = 0;
    std::vector<std::byte> bytes;
    std::vector<std::shared_ptr<const BackendDescriptor>> descriptors;
  };
  cudnnBackendDescriptorType_t type = CUDNN_BACKEND_TENSOR_DESCRIPTOR;
  bool finalized = false;
  std::map<int, Attribute> attributes;
  // By type, once it is finalized.
  TensorInfo tensor;
  OperationInfo operation;
  std::shared_ptr<const GraphInfo> graph;  // of all from the graph to the plan
  EngineInfo engine;                       // of engine, its configuration and the plan
  std::vector<EngineInfo> engines;         // of heuristics

  const Attribute* find(cudnnBackendAttributeName_t name) const;
  bool has(cudnnBackendAttributeName_t name) const { return find(name) != nullptr; }
  // Element `i` of an attribute that is there.
  template <class T>
  T value(cudnnBackendAttributeName_t name, int64_t i = 0) const {
    return reinterpret_cast<const T*>(find(name)->bytes.data())[i];
  }
  std::vector<int64_t> integers(cudnnBackendAttributeName_t name) const;
  const BackendDescriptor& descriptor(cudnnBackendAttributeName_t name) const { return *find(name)->descriptors[0]; }
};

// Of what is wrong with a descriptor that is finalized. Success: nothing.
struct CudnnProblem {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::optional<Rule> rule;  // that is broken; none: cuDNN just does not support it
  std::string text;
};

// Bytes of one element; 0: no such type is known here.
size_t element_bytes(cudnnBackendAttributeType_t type);
// Whether a descriptor of that type has the attribute, of that type and number.
bool may_set(cudnnBackendDescriptorType_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count);
// A required one that is not set; null: all are.
const char* missing_attribute(const BackendDescriptor& descriptor);
// Makes of the attributes what the descriptor is.
CudnnProblem finalize(BackendDescriptor& descriptor);

// What the graph computes, where its tensors lie: addresses by id.
void compute(const GraphInfo& graph, const EngineInfo& engine, const std::map<int64_t, void*>& addresses);

}  // namespace heddle::cuda::standin
