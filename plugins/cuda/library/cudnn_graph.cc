#include "library/cudnn_graph.h"

#include <algorithm>

namespace heddle::cuda::cudnn {

cudnnDataType_t data_type(heddle_dtype dtype) {
  return dtype == HEDDLE_F16    ? CUDNN_DATA_HALF
         : dtype == HEDDLE_BF16 ? CUDNN_DATA_BFLOAT16
         : dtype == HEDDLE_F64  ? CUDNN_DATA_DOUBLE
                                : CUDNN_DATA_FLOAT;
}

void set_dense_strides(bool channels_last, TensorShape* shape) {
  int64_t stride = 1;
  const auto place = [&](int dimension) {
    shape->strides[dimension] = stride;
    stride *= shape->dims[dimension];
  };
  if (channels_last) place(1);
  for (int i = shape->rank - 1; i >= 2; --i) place(i);
  if (!channels_last) place(1);
  place(0);
}

Status Graph::add_tensor(const TensorShape& shape, int64_t* id) {
  *id = static_cast<int64_t>(tensors_.size()) + 1;
  Descriptor tensor;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_TENSOR_DESCRIPTOR, "tensor", &tensor));
  HEDDLE_CUDNN_SET(tensor, TENSOR_DATA_TYPE, DATA_TYPE, 1, &shape.dtype);
  HEDDLE_CUDNN_SET(tensor, TENSOR_DIMENSIONS, INT64, shape.rank, shape.dims);
  HEDDLE_CUDNN_SET(tensor, TENSOR_STRIDES, INT64, shape.rank, shape.strides);
  HEDDLE_CUDNN_SET(tensor, TENSOR_UNIQUE_ID, INT64, 1, id);
  const int64_t alignment = shape.is_by_value ? int64_t{sizeof(float)} : tensor_alignment;
  HEDDLE_CUDNN_SET(tensor, TENSOR_BYTE_ALIGNMENT, INT64, 1, &alignment);
  if (shape.is_virtual) HEDDLE_CUDNN_SET(tensor, TENSOR_IS_VIRTUAL, BOOLEAN, 1, &shape.is_virtual);
  if (shape.is_by_value) HEDDLE_CUDNN_SET(tensor, TENSOR_IS_BY_VALUE, BOOLEAN, 1, &shape.is_by_value);
  HEDDLE_PLUGIN_CHECK(tensor.finalize());
  tensors_.push_back(std::move(tensor));
  return {};
}

Status Graph::add_convolution(const ConvolutionShape& shape, int64_t x, int64_t w, int64_t y) {
  Descriptor convolution, operation;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  const int64_t spatial = shape.spatial;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "convolution", &convolution));
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_COMP_TYPE, DATA_TYPE, 1, &shape.compute);
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_CONV_MODE, CONVOLUTION_MODE, 1, &mode);
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_SPATIAL_DIMS, INT64, 1, &spatial);
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_DILATIONS, INT64, spatial, shape.dilation);
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_FILTER_STRIDES, INT64, spatial, shape.stride);
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_PRE_PADDINGS, INT64, spatial, shape.pad_begin);
  HEDDLE_CUDNN_SET(convolution, CONVOLUTION_POST_PADDINGS, INT64, spatial, shape.pad_end);
  HEDDLE_PLUGIN_CHECK(convolution.finalize());
  const float one_f = 1, zero_f = 0;
  const double one_d = 1, zero_d = 0;
  const bool doubles = shape.compute == CUDNN_DATA_DOUBLE;
  const cudnnBackendAttributeType_t number = doubles ? CUDNN_TYPE_DOUBLE : CUDNN_TYPE_FLOAT;
  const void* const one = doubles ? static_cast<const void*>(&one_d) : &one_f;
  const void* const zero = doubles ? static_cast<const void*>(&zero_d) : &zero_f;
  if (shape.of_data) {
    HEDDLE_PLUGIN_CHECK(
        Descriptor::make(CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, "gradient of a convolution's data", &operation));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_BWD_DATA_DX, tensor(x));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_BWD_DATA_W, tensor(w));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_BWD_DATA_DY, tensor(y));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, convolution);
    HEDDLE_PLUGIN_CHECK(operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA, "BWD_DATA_ALPHA", number, 1, one));
    HEDDLE_PLUGIN_CHECK(operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA, "BWD_DATA_BETA", number, 1, zero));
  } else {
    HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "forward convolution", &operation));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_FORWARD_X, tensor(x));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_FORWARD_W, tensor(w));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_FORWARD_Y, tensor(y));
    HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution);
    HEDDLE_PLUGIN_CHECK(operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, "FORWARD_ALPHA", number, 1, one));
    HEDDLE_PLUGIN_CHECK(operation.set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, "FORWARD_BETA", number, 1, zero));
  }
  HEDDLE_PLUGIN_CHECK(operation.finalize());
  details_.push_back(std::move(convolution));
  operations_.push_back(std::move(operation));
  return {};
}

Status Graph::add_pointwise(const PointwiseShape& shape, int64_t x, int64_t b, int64_t y) {
  Descriptor pointwise, operation;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_POINTWISE_DESCRIPTOR, "pointwise", &pointwise));
  HEDDLE_CUDNN_SET(pointwise, POINTWISE_MODE, POINTWISE_MODE, 1, &shape.mode);
  HEDDLE_CUDNN_SET(pointwise, POINTWISE_MATH_PREC, DATA_TYPE, 1, &shape.compute);
  if (shape.mode == CUDNN_POINTWISE_RELU_FWD) {
    // A NaN remains a NaN, as in the operators' own texts.
    const int propagate = 1;
    HEDDLE_CUDNN_SET(pointwise, POINTWISE_NAN_PROPAGATION, NAN_PROPOGATION, 1, &propagate);
    if (shape.lower != 0) HEDDLE_CUDNN_SET(pointwise, POINTWISE_RELU_LOWER_CLIP, DOUBLE, 1, &shape.lower);
    if (shape.slope != 0) HEDDLE_CUDNN_SET(pointwise, POINTWISE_RELU_LOWER_CLIP_SLOPE, DOUBLE, 1, &shape.slope);
    if (shape.has_upper) HEDDLE_CUDNN_SET(pointwise, POINTWISE_RELU_UPPER_CLIP, DOUBLE, 1, &shape.upper);
  }
  HEDDLE_PLUGIN_CHECK(pointwise.finalize());
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "pointwise operation", &operation));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_POINTWISE_PW_DESCRIPTOR, pointwise);
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_POINTWISE_XDESC, tensor(x));
  if (b >= 0) HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_POINTWISE_BDESC, tensor(b));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_POINTWISE_YDESC, tensor(y));
  HEDDLE_PLUGIN_CHECK(operation.finalize());
  details_.push_back(std::move(pointwise));
  operations_.push_back(std::move(operation));
  return {};
}

Status Graph::add_attention(int64_t query, int64_t key, int64_t value, int64_t factor, int64_t output) {
#if CUDNN_VERSION >= 91301
  if (Api::get().cudnnGetVersion() < 91301) return plugin::unsupported("cuDNN: attention is there from 9.13.1 on");
  Descriptor operation;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR, "attention", &operation));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_SDPA_FWD_QDESC, tensor(query));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_SDPA_FWD_KDESC, tensor(key));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_SDPA_FWD_VDESC, tensor(value));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_SDPA_FWD_SCALEDESC, tensor(factor));
  HEDDLE_CUDNN_SET_DESCRIPTOR(operation, OPERATION_SDPA_FWD_ODESC, tensor(output));
  HEDDLE_PLUGIN_CHECK(operation.finalize());
  operations_.push_back(std::move(operation));
  return {};
#else
  static_cast<void>(query + key + value + factor + output);
  return plugin::unsupported("cuDNN: this plugin was built with headers older than 9.13.1, which have no attention");
#endif
}

Status Graph::finish(const Target& target) {
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph", &graph_));
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const Descriptor& operation : operations_) operations.push_back(operation.get());
  HEDDLE_CUDNN_SET(graph_, OPERATIONGRAPH_OPS, BACKEND_DESCRIPTOR, operations.size(), operations.data());
  if (target.handle) HEDDLE_CUDNN_SET(graph_, OPERATIONGRAPH_HANDLE, HANDLE, 1, &target.handle);
  return graph_.finalize();
}

// ---------------------------------------------------------------- plans

namespace {

// Checks the numerical notes of an engine, which tell what it does beyond rounding sums in another order. Engines whose results differ from
// run to run, that use sums of fewer bits or large Winograd tiles are never used.
Status check_notes(const Descriptor& engine, const PlanRules& rules) {
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  int64_t count = 0;
  HEDDLE_PLUGIN_CHECK(engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, "ENGINE_NUMERICAL_NOTE", CUDNN_TYPE_NUMERICAL_NOTE,
                                 CUDNN_NUMERICAL_NOTE_TYPE_COUNT, &count, notes));
  for (int64_t i = 0; i < std::min<int64_t>(count, CUDNN_NUMERICAL_NOTE_TYPE_COUNT); ++i) {
    const cudnnBackendNumericalNote_t note = notes[i];
    const bool never = note == CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION || note == CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC ||
                       note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6 || note == CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13;
    const bool unwanted = (note == CUDNN_NUMERICAL_NOTE_TENSOR_CORE && !rules.tensor_cores) ||
                          (note == CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS && !rules.converts);
    if (never || unwanted) return plugin::unsupported("cuDNN: an engine whose results are not exact enough");
  }
  return {};
}

// Returns true if no other engine would do better: there is no memory, or the device or the call is at fault.
bool is_failure(const Status& status) {
  return !status.ok() && status.code != HEDDLE_ERROR_UNSUPPORTED;
}

}  // namespace

Status Plan::attempt(Descriptor config, const Target& target, const PlanRules& rules) {
  Descriptor engine, plan;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine", &engine));
  cudnnBackendDescriptor_t to = engine.get();
  int64_t count = 0;
  HEDDLE_PLUGIN_CHECK(config.get(CUDNN_ATTR_ENGINECFG_ENGINE, "ENGINECFG_ENGINE", CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &count, &to));
  HEDDLE_PLUGIN_CHECK(check_notes(engine, rules));
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "execution plan", &plan));
  if (target.handle) HEDDLE_CUDNN_SET(plan, EXECUTION_PLAN_HANDLE, HANDLE, 1, &target.handle);
  if (target.properties) HEDDLE_CUDNN_SET_DESCRIPTOR(plan, EXECUTION_PLAN_DEVICEPROP, *target.properties);
  HEDDLE_CUDNN_SET_DESCRIPTOR(plan, EXECUTION_PLAN_ENGINE_CONFIG, config);
  HEDDLE_PLUGIN_CHECK(plan.finalize());
  int64_t bytes = 0;
  HEDDLE_PLUGIN_CHECK(
      plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, "EXECUTION_PLAN_WORKSPACE_SIZE", CUDNN_TYPE_INT64, 1, &count, &bytes));
  if (static_cast<uint64_t>(bytes) > rules.max_workspace_bytes)
    return plugin::unsupported("cuDNN: a workspace of " + std::to_string(bytes) + " bytes, where there may be " +
                               std::to_string(rules.max_workspace_bytes));
  workspace_bytes_ = static_cast<uint64_t>(bytes);
  config_ = std::move(config);
  plan_ = std::move(plan);
  return {};
}

Status Plan::choose_of(cudnnBackendHeurMode_t mode, const Graph& graph, const Target& target, const PlanRules& rules, Status* why) {
  Descriptor heuristics;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "engine heuristics", &heuristics));
  HEDDLE_CUDNN_SET_DESCRIPTOR(heuristics, ENGINEHEUR_OPERATION_GRAPH, graph.descriptor());
  HEDDLE_CUDNN_SET(heuristics, ENGINEHEUR_MODE, HEUR_MODE, 1, &mode);
  if (target.properties) HEDDLE_CUDNN_SET_DESCRIPTOR(heuristics, ENGINEHEUR_DEVICEPROP, *target.properties);
  HEDDLE_PLUGIN_CHECK(heuristics.finalize());
  int64_t count = 0;
  HEDDLE_PLUGIN_CHECK(
      heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, "ENGINEHEUR_RESULTS", CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr));
  std::vector<Descriptor> configs(static_cast<size_t>(count));
  std::vector<cudnnBackendDescriptor_t> to;
  for (Descriptor& config : configs) {
    HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "engine configuration", &config));
    to.push_back(config.get());
  }
  int64_t given = 0;
  if (count > 0)
    HEDDLE_PLUGIN_CHECK(
        heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, "ENGINEHEUR_RESULTS", CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &given, to.data()));
  for (int64_t i = 0; i < std::min(count, given) && !plan_; ++i) {
    Status status = attempt(std::move(configs[static_cast<size_t>(i)]), target, rules);
    if (is_failure(status)) return status;
    if (!status.ok()) *why = std::move(status);
  }
  return {};
}

Status Plan::choose(const Graph& graph, const Target& target, const PlanRules& rules) {
  *this = {};
  Status why = plugin::unsupported("cuDNN: its heuristics know no engine");
  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    Status status = choose_of(mode, graph, target, rules, &why);
    if (is_failure(status)) return status;
    if (!status.ok()) why = std::move(status);
    if (plan_) return {};
  }
  return why;
}

// ---------------------------------------------------------------- variant packs

Status VariantPack::bind(const int64_t* ids, void* const* addresses, int count, void* workspace) {
  if (count == count_ && workspace == workspace_ && std::equal(addresses, addresses + count, addresses_)) return {};
  if (count > most) return plugin::invalid("more tensors than a variant pack has room for");
  count_ = -1;
  HEDDLE_PLUGIN_CHECK(Descriptor::make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack", &pack_));
  HEDDLE_CUDNN_SET(pack_, VARIANT_PACK_UNIQUE_IDS, INT64, count, ids);
  HEDDLE_CUDNN_SET(pack_, VARIANT_PACK_DATA_POINTERS, VOID_PTR, count, addresses);
  HEDDLE_CUDNN_SET(pack_, VARIANT_PACK_WORKSPACE, VOID_PTR, 1, &workspace);
  HEDDLE_PLUGIN_CHECK(pack_.finalize());
  std::copy_n(addresses, count, addresses_);
  workspace_ = workspace;
  count_ = count;
  return {};
}

}  // namespace heddle::cuda::cudnn
