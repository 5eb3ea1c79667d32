// Finalizes backend descriptors: tensors, operations, graphs, the engines that heuristics offer, plans.
#include <algorithm>
#include <set>

#include "cudnn_objects.h"

namespace heddle::cuda::standin {
namespace {

CudnnProblem bad_shapes(const std::string& text) {
  return {CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH, Rule::cudnn_shapes, text};
}

size_t width(cudnnDataType_t dtype) {
  return dtype == CUDNN_DATA_DOUBLE ? 8 : dtype == CUDNN_DATA_FLOAT ? 4 : 2;
}

CudnnProblem finalize_tensor(BackendDescriptor& d) {
  TensorInfo& t = d.tensor;
  t.id = d.value<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
  t.alignment = d.value<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT);
  t.dims = d.integers(CUDNN_ATTR_TENSOR_DIMENSIONS);
  t.strides = d.integers(CUDNN_ATTR_TENSOR_STRIDES);
  t.dtype = d.value<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
  t.is_virtual = d.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL) && d.value<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  t.is_by_value = d.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE) && d.value<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  if (t.is_by_value && t.is_virtual) return bad_shapes("a tensor by value that is virtual");
  if (t.dims.size() != t.strides.size()) return bad_shapes("a tensor of other numbers of dims and strides");
  for (const int64_t n : t.dims)
    if (n < 1) return bad_shapes("a tensor without elements");
  if (t.alignment < 1 || t.alignment % static_cast<int64_t>(width(t.dtype)) != 0) return bad_shapes("an alignment below an element's");
  return {};
}

CudnnProblem finalize_convolution(BackendDescriptor& d) {
  const int64_t spatial = d.value<int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS);
  for (const cudnnBackendAttributeName_t name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES,
                                                 CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS}) {
    const std::vector<int64_t> values = d.integers(name);
    const int64_t least = name == CUDNN_ATTR_CONVOLUTION_DILATIONS || name == CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES ? 1 : 0;
    if (static_cast<int64_t>(values.size()) != spatial || *std::min_element(values.begin(), values.end()) < least)
      return bad_shapes("a convolution of " + std::to_string(spatial) + " dimensions");
  }
  return {};
}

CudnnProblem finalize_convolution_operation(BackendDescriptor& d) {
  const bool of_data = d.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
  OperationInfo& o = d.operation;
  o.kind = of_data ? OperationInfo::Kind::gradient_of_data : OperationInfo::Kind::convolution;
  o.x = d.descriptor(of_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X).tensor;
  o.w = d.descriptor(of_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W).tensor;
  o.y = d.descriptor(of_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y).tensor;
  const BackendDescriptor& c =
      d.descriptor(of_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
  o.stride = c.integers(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
  o.dilation = c.integers(CUDNN_ATTR_CONVOLUTION_DILATIONS);
  o.pad_begin = c.integers(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
  o.pad_end = c.integers(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS);
  const size_t rank = o.stride.size() + 2;
  if (o.x.dims.size() != rank || o.w.dims.size() != rank || o.y.dims.size() != rank || rank < 4)
    return bad_shapes("a convolution between tensors of other ranks");
  if (o.x.dims[0] != o.y.dims[0] || o.w.dims[0] != o.y.dims[1] || o.x.dims[1] % o.w.dims[1] != 0 ||
      o.w.dims[0] % (o.x.dims[1] / o.w.dims[1]) != 0)
    return bad_shapes("a convolution between tensors of other batches or channels");
  for (size_t i = 0; i < o.stride.size(); ++i) {
    const int64_t free = o.x.dims[i + 2] + o.pad_begin[i] + o.pad_end[i] - ((o.w.dims[i + 2] - 1) * o.dilation[i] + 1);
    if (free < 0 || free / o.stride[i] + 1 != o.y.dims[i + 2])
      return bad_shapes("a convolution whose output has other extents along dimension " + std::to_string(i + 2));
  }
  const bool doubles = c.value<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) == CUDNN_DATA_DOUBLE;
  const cudnnBackendAttributeName_t alpha =
      of_data ? CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA;
  if ((d.find(alpha)->type == CUDNN_TYPE_DOUBLE) != doubles) return bad_shapes("a factor of another type than is computed in");
  return {};
}

// Returns true if the dims of an operand are the output's, or 1.
bool broadcasts(const TensorInfo& from, const TensorInfo& to) {
  if (from.dims.size() != to.dims.size()) return false;
  for (size_t i = 0; i < to.dims.size(); ++i)
    if (from.dims[i] != to.dims[i] && from.dims[i] != 1) return false;
  return true;
}

bool takes_two(cudnnPointwiseMode_t mode) {
  return mode <= CUDNN_POINTWISE_MIN || mode == CUDNN_POINTWISE_MAX || (mode >= CUDNN_POINTWISE_ADD_SQUARE && mode <= CUDNN_POINTWISE_SUB);
}

CudnnProblem finalize_pointwise_operation(BackendDescriptor& d) {
  OperationInfo& o = d.operation;
  const BackendDescriptor& p = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
  o.kind = OperationInfo::Kind::pointwise;
  o.mode = p.value<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
  o.x = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_XDESC).tensor;
  o.y = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_YDESC).tensor;
  o.has_b = d.has(CUDNN_ATTR_OPERATION_POINTWISE_BDESC);
  if (o.has_b) o.w = d.descriptor(CUDNN_ATTR_OPERATION_POINTWISE_BDESC).tensor;
  if (p.has(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP)) o.lower = p.value<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP);
  if (p.has(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE)) o.slope = p.value<double>(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE);
  o.has_upper = p.has(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
  if (o.has_upper) o.upper = p.value<double>(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP);
  if (o.has_b != takes_two(o.mode)) return bad_shapes("a pointwise operation of another number of operands than its mode");
  if (!broadcasts(o.x, o.y) || (o.has_b && !broadcasts(o.w, o.y)))
    return bad_shapes("a pointwise operation between tensors that do not broadcast");
  return {};
}

// The dims are batch, head, row, column.
CudnnProblem finalize_attention(BackendDescriptor& d) {
  OperationInfo& o = d.operation;
  o.kind = OperationInfo::Kind::attention;
  o.x = d.descriptor(CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC).tensor;
  o.w = d.descriptor(CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC).tensor;
  o.value = d.descriptor(CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC).tensor;
  o.y = d.descriptor(CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC).tensor;
  o.has_factor = d.has(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC);
  if (o.has_factor) o.factor = d.descriptor(CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC).tensor;
  for (const TensorInfo* t : {&o.x, &o.w, &o.value, &o.y})
    if (t->dims.size() != 4) return bad_shapes("attention between tensors of other ranks than four");
  const auto is = [](const TensorInfo& t, int64_t batch, int64_t heads, int64_t rows, int64_t columns) {
    return t.dims == std::vector<int64_t>{batch, heads, rows, columns};
  };
  const int64_t batch = o.x.dims[0], heads = o.x.dims[1];
  if (!is(o.w, batch, heads, o.w.dims[2], o.x.dims[3]) || !is(o.value, batch, heads, o.w.dims[2], o.value.dims[3]) ||
      !is(o.y, batch, heads, o.x.dims[2], o.value.dims[3]))
    return bad_shapes("attention between tensors whose extents do not go together");
  if (o.has_factor && (o.factor.element_count() != 1 || o.factor.dtype != CUDNN_DATA_FLOAT))
    return bad_shapes("attention with a scale that is not one f32");
  return {};
}

CudnnProblem bad_graph(const std::string& text) {
  return {CUDNN_STATUS_BAD_PARAM, Rule::cudnn_graph, text};
}

CudnnProblem finalize_graph(BackendDescriptor& d) {
  auto graph = std::make_shared<GraphInfo>();
  for (const auto& operation : d.find(CUDNN_ATTR_OPERATIONGRAPH_OPS)->descriptors) graph->operations.push_back(operation->operation);
  std::map<int64_t, TensorInfo> known;
  std::set<int64_t> written;
  for (const OperationInfo& operation : graph->operations) {
    std::vector<const TensorInfo*> all = operation.read();
    for (const TensorInfo* t : all)
      if (t->is_virtual && !written.count(t->id)) return bad_graph("a virtual tensor that nothing writes: " + std::to_string(t->id));
    all.push_back(&operation.written());
    for (const TensorInfo* t : all) {
      const TensorInfo& first = known.emplace(t->id, *t).first->second;
      if (first.dims != t->dims || first.strides != t->strides || first.is_virtual != t->is_virtual)
        return bad_graph("two tensors of one id: " + std::to_string(t->id));
    }
    if (!written.insert(operation.written().id).second)
      return bad_graph("a tensor written twice: " + std::to_string(operation.written().id));
  }
  d.graph = std::move(graph);
  return {};
}

// Offers engines as cuDNN might: the fastest, which rounds inputs; one that this device lacks; one whose results differ from run to run;
// one that needs more memory than there is; and then one that is acceptable.
CudnnProblem finalize_heuristics(BackendDescriptor& d) {
  d.graph = d.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).graph;
  const OperationInfo& first = d.graph->operations[0];
  if (first.kind == OperationInfo::Kind::attention) {
    // Limits of the head's width and of layouts, as in cuDNN's documentation: "Scaled Dot Product Attention".
    const bool halves = first.x.dtype == CUDNN_DATA_HALF || first.x.dtype == CUDNN_DATA_BFLOAT16;
    bool fits = halves && d.graph->operations.size() == 1;
    for (const TensorInfo* t : {&first.x, &first.w, &first.value, &first.y})
      fits = fits && t->dtype == first.x.dtype && t->dims[3] % 8 == 0 && t->dims[3] <= 256 && t->strides[3] == 1;
    if (!fits) return {CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, {}, "no engine has this attention"};
    d.engines = {{1, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096, true, false}};
    return {};
  }
  // No engine of cuDNN 9.19 has a plan for a convolution between memory of different types, for example from f16 to f32.
  const TensorInfo& operand = first.kind == OperationInfo::Kind::gradient_of_data ? first.y : first.x;
  bool mixes = false;
  for (const TensorInfo* t : {&first.w, &first.written()}) mixes = mixes || (!t->is_virtual && t->dtype != operand.dtype);
  if (first.kind != OperationInfo::Kind::pointwise && mixes)
    return {CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, {}, "no engine convolves between these types"};
  for (size_t i = 1; i < d.graph->operations.size(); ++i) {
    const cudnnPointwiseMode_t mode = d.graph->operations[i].mode;
    // cuDNN 9.19 fuses nothing into a gradient of data (device_cudnn_test.cc checks it).
    const bool known = d.graph->operations[0].kind != OperationInfo::Kind::gradient_of_data &&
                       d.graph->operations[i].kind == OperationInfo::Kind::pointwise &&
                       (mode == CUDNN_POINTWISE_ADD || mode == CUDNN_POINTWISE_MUL || mode == CUDNN_POINTWISE_RELU_FWD ||
                        mode == CUDNN_POINTWISE_TANH_FWD || mode == CUDNN_POINTWISE_SIGMOID_FWD);
    if (!known) return {CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN, {}, "no engine has this pattern"};
  }
  if (d.value<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK) {
    d.engines = {{6, {CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP}, 0, true, false}};
    return {};
  }
  d.engines = {{1, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096, true, true},
               {2, {}, 0, false, false},
               {3, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0, true, false},
               {4, {}, uint64_t{1} << 50, true, false},
               {5, {}, 1000, true, false}};
  return {};
}

CudnnProblem finalize_plan(BackendDescriptor& d) {
  const BackendDescriptor& config = d.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
  d.graph = config.graph;
  d.engine = config.engine;
  if (!d.engine.works) return {CUDNN_STATUS_NOT_SUPPORTED_ARCH_MISMATCH, {}, "the engine is not there on this device"};
  return {};
}

CudnnProblem finalize_variant_pack(BackendDescriptor& d) {
  const std::vector<int64_t> ids = d.integers(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  if (d.find(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS)->count != static_cast<int64_t>(ids.size()) ||
      std::set<int64_t>(ids.begin(), ids.end()).size() != ids.size())
    return {CUDNN_STATUS_BAD_PARAM, Rule::cudnn_variant_pack, "an id for each pointer, each once"};
  return {};
}

}  // namespace

CudnnProblem finalize(BackendDescriptor& d) {
  switch (d.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return finalize_tensor(d);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return finalize_convolution(d);
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
      return {};
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return finalize_convolution_operation(d);
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
      return finalize_pointwise_operation(d);
    case CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR:
      return finalize_attention(d);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      return finalize_graph(d);
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      return finalize_heuristics(d);
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR:
      return finalize_plan(d);
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR:
      return finalize_variant_pack(d);
    default:
      return {CUDNN_STATUS_NOT_SUPPORTED, {}, "the stand-in has no such descriptor to finalize"};
  }
}

int64_t TensorInfo::element_count() const {
  int64_t n = 1;
  for (const int64_t dim : dims) n *= dim;
  return n;
}

uint64_t TensorInfo::bytes() const {
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return static_cast<uint64_t>(last + 1) * width(dtype);
}

std::vector<const TensorInfo*> OperationInfo::read() const {
  if (kind == Kind::attention && has_factor) return {&x, &w, &value, &factor};
  if (kind == Kind::attention) return {&x, &w, &value};
  if (kind == Kind::gradient_of_data) return {&w, &y};
  if (kind == Kind::convolution || has_b) return {&x, &w};
  return {&x};
}

std::vector<TensorInfo> GraphInfo::tensors() const {
  std::vector<TensorInfo> all;
  for (const OperationInfo& operation : operations) {
    std::vector<const TensorInfo*> own = operation.read();
    own.push_back(&operation.written());
    for (const TensorInfo* t : own)
      if (!t->is_virtual && std::none_of(all.begin(), all.end(), [&](const TensorInfo& o) { return o.id == t->id; })) all.push_back(*t);
  }
  return all;
}

}  // namespace heddle::cuda::standin
