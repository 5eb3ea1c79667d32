// cuDNN's handles and backend descriptors in the stand-in. A descriptor holds its attributes as they were set, and knows from the table of
// cudnn_schema.inc which ones are allowed; the result of finalizing it is stored with them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "standin/exports.h"
#include "standin/rules.h"

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
  // Returns the bytes from the first to the end of the last element.
  uint64_t bytes() const;
};

struct OperationInfo {
  enum class Kind : uint8_t { convolution, gradient_of_data, pointwise, attention };
  Kind kind = Kind::pointwise;
  TensorInfo x, w, y;        // for a gradient: w and y are read, x is written; for attention: query, key, output
  TensorInfo value, factor;  // for attention
  bool has_factor = false;
  std::vector<int64_t> stride, dilation, pad_begin, pad_end;
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  bool has_b = false;  // the operand is w
  double lower = 0, upper = 0, slope = 0;
  bool has_upper = false;

  const TensorInfo& written() const { return kind == Kind::gradient_of_data ? x : y; }
  std::vector<const TensorInfo*> read() const;
};

struct GraphInfo {
  std::vector<OperationInfo> operations;
  // Returns the tensors that are not virtual, each once.
  std::vector<TensorInfo> tensors() const;
};

struct EngineInfo {
  int64_t index = 0;
  std::vector<cudnnBackendNumericalNote_t> notes;
  uint64_t workspace_bytes = 0;
  bool works = true;     // its plans can be finalized
  bool narrows = false;  // reads f32 with ten bits after the binary point
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
  // The result of finalizing, by type.
  TensorInfo tensor;
  OperationInfo operation;
  std::shared_ptr<const GraphInfo> graph;  // for all types from the graph to the plan
  EngineInfo engine;                       // for an engine, its configuration and the plan
  std::vector<EngineInfo> engines;         // for heuristics

  const Attribute* find(cudnnBackendAttributeName_t name) const;
  bool has(cudnnBackendAttributeName_t name) const { return find(name) != nullptr; }
  // Returns element `i` of an attribute that is set.
  template <class T>
  T value(cudnnBackendAttributeName_t name, int64_t i = 0) const {
    return reinterpret_cast<const T*>(find(name)->bytes.data())[i];
  }
  std::vector<int64_t> integers(cudnnBackendAttributeName_t name) const;
  const BackendDescriptor& descriptor(cudnnBackendAttributeName_t name) const { return *find(name)->descriptors[0]; }
};

// The error in a descriptor that is finalized. Success: none.
struct CudnnProblem {
  cudnnStatus_t status = CUDNN_STATUS_SUCCESS;
  std::optional<Rule> rule;  // that is broken; none: cuDNN does not support it
  std::string text;
};

// Returns the bytes of one element; 0 if the type is not known here.
size_t element_bytes(cudnnBackendAttributeType_t type);
// Returns true if a descriptor of that type has the attribute, with that type and number of elements.
bool may_set(cudnnBackendDescriptorType_t descriptor, cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count);
// Returns a required attribute that is not set; null if all are set.
const char* missing_attribute(const BackendDescriptor& descriptor);
// Finalizes the descriptor from its attributes.
CudnnProblem finalize(BackendDescriptor& descriptor);

// Computes the graph on its tensors: addresses by id.
void compute(const GraphInfo& graph, const EngineInfo& engine, const std::map<int64_t, void*>& addresses);

}  // namespace heddle::cuda::standin
