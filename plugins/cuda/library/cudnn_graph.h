// A graph of cuDNN's operations, and the execution plan that is chosen for it:
//
//   Graph graph;
//   int64_t x, w, y;
//   HEDDLE_PLUGIN_CHECK(graph.add_tensor(shape_of_x, &x)); ...
//   HEDDLE_PLUGIN_CHECK(graph.add_convolution(shape, x, w, y));
//   HEDDLE_PLUGIN_CHECK(graph.finish(target));
//   HEDDLE_PLUGIN_CHECK(plan.choose(graph, target, rules));
#pragma once

#include <cstdint>
#include <vector>

#include "library/cudnn_descriptor.h"

namespace heddle::cuda::cudnn {

// The device that plans are made for: given by a handle that was created there, or by its known properties.
struct Target {
  cudnnHandle_t handle = nullptr;
  const Descriptor* properties = nullptr;  // of type CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR, in place of the handle
};

constexpr int max_dims = 5;  // of a tensor: batch, channels, three of space
constexpr int64_t tensor_alignment = 16;

// Returns cuDNN's type for a floating dtype.
cudnnDataType_t data_type(heddle_dtype dtype);

struct TensorShape {
  int rank = 0;
  int64_t dims[max_dims] = {};
  int64_t strides[max_dims] = {};  // in elements
  cudnnDataType_t dtype = CUDNN_DATA_FLOAT;
  bool is_virtual = false;   // passed between two operations, never in memory
  bool is_by_value = false;  // one number on the host, read when the plan is executed
};

// Sets the strides of a dense tensor, with the batch outermost and channels innermost or directly after the batch.
void set_dense_strides(bool channels_last, TensorShape* shape);

struct ConvolutionShape {
  int spatial = 2;
  int64_t stride[3] = {1, 1, 1}, dilation[3] = {1, 1, 1}, pad_begin[3] = {}, pad_end[3] = {};
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  bool of_data = false;  // the gradient of x by y: writes x, reads y and w
};

struct PointwiseShape {
  cudnnPointwiseMode_t mode = CUDNN_POINTWISE_ADD;
  cudnnDataType_t compute = CUDNN_DATA_FLOAT;
  // Parameters of CUDNN_POINTWISE_RELU_FWD.
  double lower = 0, slope = 0;
  bool has_upper = false;
  double upper = 0;
};

class Graph {
 public:
  // `id` receives the tensor's number for the variant pack.
  Status add_tensor(const TensorShape& shape, int64_t* id);
  Status add_convolution(const ConvolutionShape& shape, int64_t x, int64_t w, int64_t y);
  // `b` is -1 without a second operand.
  Status add_pointwise(const PointwiseShape& shape, int64_t x, int64_t b, int64_t y);
  // Adds output = softmax(factor query key^T) value; dims are batch, head, row, column. `factor`: one f32.
  Status add_attention(int64_t query, int64_t key, int64_t value, int64_t factor, int64_t output);
  Status finish(const Target& target);
  const Descriptor& descriptor() const { return graph_; }

 private:
  const Descriptor& tensor(int64_t id) const { return tensors_[static_cast<size_t>(id - 1)]; }

  std::vector<Descriptor> tensors_, details_, operations_;
  Descriptor graph_;
};

// The rules for engines that are acceptable.
struct PlanRules {
  bool tensor_cores = false;  // f32 inputs may be read with ten bits after the binary point: tf32
  bool converts = false;      // inputs may be converted to a narrower type
  uint64_t max_workspace_bytes = 0;
};

class Plan {
 public:
  // Chooses the first configuration that the heuristics offer, that obeys the rules and that can be finalized. Errors: unsupported, with
  // the last reason; any other failure of cuDNN, such as out_of_memory, is returned at once.
  Status choose(const Graph& graph, const Target& target, const PlanRules& rules);
  uint64_t workspace_bytes() const { return workspace_bytes_; }
  const Descriptor& descriptor() const { return plan_; }
  explicit operator bool() const { return static_cast<bool>(plan_); }

 private:
  Status choose_of(cudnnBackendHeurMode_t mode, const Graph& graph, const Target& target, const PlanRules& rules, Status* why);
  Status attempt(Descriptor config, const Target& target, const PlanRules& rules);

  Descriptor config_, plan_;
  uint64_t workspace_bytes_ = 0;
};

// The addresses of a plan's tensors and workspace, as cuDNN takes them. It is made anew only where they differ from those of the run
// before.
class VariantPack {
 public:
  Status bind(const int64_t* ids, void* const* addresses, int count, void* workspace);
  const Descriptor& descriptor() const { return pack_; }

 private:
  static constexpr int most = 16;
  Descriptor pack_;
  int count_ = -1;
  void* workspace_ = nullptr;
  void* addresses_[most] = {};
};

}  // namespace heddle::cuda::cudnn
