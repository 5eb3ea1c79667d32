// Implements Conv and ConvTranspose by cuDNN's graphs: the convolution, or for a transposed one the gradient of a convolution's data, with
// as much of the bias and fused operators as cuDNN has an engine for. The rest is one pointwise kernel afterwards, in the same step, which
// reads and writes the output in place. A bias of 16-bit numbers that is left to that kernel is added to f32 sums in scratch, so that they
// are rounded once, as by the CPU's operators. If an output extends further than any element of the input reaches, cuDNN writes a corner of
// it, with the strides of the whole, and the remainder is zeros.
#include <algorithm>
#include <memory>

#include "kernels/common/convolution_epilogue.h"
#include "kernels/common/gpu_kernel.h"
#include "kernels/common/pointwise_launch.h"
#include "kernels/common/widened_convolution.h"
#include "kernels/kernel_families.h"
#include "library/cudnn_handle.h"
#include "shared/dims.h"
#include "shared/image/window.h"

namespace heddle::cuda {
namespace {

using cudnn::ConvolutionShape;
using cudnn::PlannedCall;
using cudnn::TensorShape;
using operators::dims_of;
using operators::Window;
using operators::WindowAttributes;

constexpr uint64_t workspace_alignment = WidenedConvolution::alignment;

// cuDNN takes at least two spatial dimensions: a single one is preceded by another of extent 1.
TensorShape tensor_shape(const int64_t* dims, int rank, bool channels_last, heddle_dtype dtype) {
  TensorShape shape;
  shape.dtype = cudnn::data_type(dtype);
  for (int i = 0; i < rank; ++i) {
    if (rank == 3 && i == 2) shape.dims[shape.rank++] = 1;
    shape.dims[shape.rank++] = dims[i];
  }
  cudnn::set_dense_strides(channels_last, &shape);
  return shape;
}

TensorShape tensor_shape(const heddle_tensor& tensor) {
  return tensor_shape(tensor.dims, tensor.rank, tensor.layout.rank != 0, tensor.dtype);
}

Status check_layout(const heddle_tensor& tensor, const char* what) {
  const heddle_layout last = channels_last(tensor.rank);
  const heddle_layout& layout = tensor.layout;
  if (layout.rank == 0 || (layout.rank == last.rank && std::equal(last.order, last.order + last.rank, layout.order))) return {};
  return unsupported(std::string(what) + " has a layout other than row-major and channels-last");
}

class ConvolutionKernel : public GpuKernel {
 public:
  explicit ConvolutionKernel(bool transposed) : transposed_(transposed) {}
  Status create(const CreateContext& context) {
    HEDDLE_PLUGIN_CHECK(on(context));
    HEDDLE_PLUGIN_CHECK(cudnn::check_library());
    attributes_ = WindowAttributes(context.attributes);
    groups_ = context.attributes.i("group", 1);
    HEDDLE_PLUGIN_CHECK(convolution_epilogue_ops(context, &epilogue_ops_));
    HEDDLE_PLUGIN_CHECK(planner_.ask(context, cudnn::planner_name));
    return stream_.ask(context, cudnn::stream_name);
  }
  static bool accepts_epilogue(const CreateContext& context) { return takes_convolution_epilogue_ops(context); }
  static std::vector<heddle_format> formats(const CreateContext& context);

  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t, int64_t) const;

 private:
  Status read_shapes(PrepareContext& context);
  Status choose_plan(PrepareContext& context);
  bool has_bias(const PrepareContext& context) const;
  static Status operand_shape(const PrepareContext& context, const ConvolutionEpilogueOp& op, TensorShape* shape);
  // Plans the graph of the convolution and the first `count` epilogue ops.
  Status plan_with(PrepareContext& context, size_t count);
  Status prepare_rest(PrepareContext& context);
  // Returns the shape that cuDNN reads, and writes.
  TensorShape read_shape(const heddle_tensor& operand) const { return tensor_shape(is_widened_ ? widened(operand) : operand); }
  TensorShape written_shape(const heddle_tensor& y) const;
  uint64_t scratch_bytes() const;  // including the plan's workspace

  const bool transposed_;
  WindowAttributes attributes_;
  int64_t groups_ = 1;
  std::vector<ConvolutionEpilogueOp> epilogue_ops_;
  Needed<cudnn::Planner> planner_;
  Needed<cudnn::StreamHandle> stream_;

  ConvolutionShape shape_;
  bool is_empty_ = false;              // the output has no element
  bool sums_nothing_ = false;          // the input has none, or none reaches the output: sums are 0
  bool is_cut_ = false;                // cuDNN writes only a corner of the output, of the extents below
  int64_t reached_[3] = {1, 1, 1};     // in the order of shape_'s spatial dimensions
  std::unique_ptr<PlannedCall> call_;  // null where nothing is summed
  std::vector<uint32_t> call_inputs_;  // whose addresses come before the output's
  size_t done_ = 0;                    // epilogue ops that the plan computes
  bool is_widened_ = false;            // cuDNN reads and writes f32 in scratch, for operands that are of 16 bits
  WidenedConvolution widened_;
  bool has_rest_ = false;
  std::vector<uint32_t> rest_inputs_;  // inputs after the output itself, or after the sums
  PointwiseLaunch rest_;
};

// Returns the preferred formats. For 16-bit numbers engines read channels-last, and transpose other layouts; other numbers, which no tensor
// core multiplies as they are, are read with channels first.
std::vector<heddle_format> ConvolutionKernel::formats(const CreateContext& context) {
  heddle_format row_major = {};
  row_major.struct_size = sizeof(row_major);
  const heddle_type& x = *context.input(0);
  const heddle_type& y = *context.output(0);
  if (x.rank < 3 || x.rank > 5 || ((x.flags | y.flags) & HEDDLE_TYPE_DYNAMIC)) return {row_major};
  heddle_format last = row_major;
  last.inputs[0] = last.outputs[0] = channels_last(x.rank);
  constexpr double transpose_ns = 1000, transpose_ns_per_byte = 0.125;  // as the host weighs copies between layouts, and below them
  const double elements = static_cast<double>(dims_of(x).count(0, x.rank)) + static_cast<double>(dims_of(y).count(0, y.rank));
  heddle_format& dear = byte_width(x.dtype) == 2 ? row_major : last;
  dear.cost_ns = transpose_ns + transpose_ns_per_byte * elements * static_cast<double>(byte_width(x.dtype));
  return {row_major, last};
}

Status ConvolutionKernel::read_shapes(PrepareContext& context) {
  const heddle_tensor& x = *context.input(0);
  const heddle_tensor& w = *context.input(1);
  const heddle_tensor& y = *context.output(0);
  HEDDLE_PLUGIN_CHECK(check_layout(x, "the input"));
  HEDDLE_PLUGIN_CHECK(check_layout(y, "the output"));
  const std::vector<int64_t> kernel(w.dims + 2, w.dims + w.rank);
  Window window;
  HEDDLE_PLUGIN_CHECK(transposed_ ? operators::resolve_transposed_window(attributes_, dims_of(x), kernel, &window)
                                  : operators::resolve_window(attributes_, dims_of(x), kernel, &window));
  shape_ = {};
  shape_.of_data = transposed_;
  shape_.compute = x.dtype == HEDDLE_F64 ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  const int shift = window.spatial == 1 ? 1 : 0;
  shape_.spatial = window.spatial + shift;
  is_cut_ = false;
  bool reaches = true;
  for (int i = 0; i < window.spatial; ++i) {
    const int64_t stride = window.stride[i];
    shape_.stride[i + shift] = stride;
    shape_.dilation[i + shift] = window.dilation[i];
    shape_.pad_begin[i + shift] = window.pad_begin[i];
    shape_.pad_end[i + shift] = window.pad_end[i];
    if (!transposed_) continue;
    // The convolution whose gradient this is must have as many outputs as there are inputs here. If the output extends a stride or more
    // beyond what they reach, it would have more: then cuDNN writes the reached part, and the rest is zeros.
    const int64_t wanted = (window.input[i] - 1) * stride + window.reach(i) - window.pad_begin[i];
    shape_.pad_end[i + shift] = std::max<int64_t>(0, wanted - window.output[i]);
    const bool is_beyond = window.output[i] - wanted >= stride;
    reached_[i + shift] = is_beyond ? wanted : window.output[i];
    is_cut_ = is_cut_ || is_beyond;
    reaches = reaches && wanted > 0;
  }
  is_empty_ = y.element_count == 0;
  sums_nothing_ = x.element_count == 0 || w.element_count == 0 || !reaches;
  return {};
}

TensorShape ConvolutionKernel::written_shape(const heddle_tensor& y) const {
  TensorShape shape = read_shape(y);
  for (int i = 0; is_cut_ && i < shape_.spatial; ++i) shape.dims[2 + i] = reached_[i];
  return shape;
}

// Returns true if there is a bias: one number for each channel, whatever its rank.
bool ConvolutionKernel::has_bias(const PrepareContext& context) const {
  return !epilogue_ops_.empty() && epilogue_ops_[0].input == 2 && context.input(2)->rank == 1;
}

uint64_t ConvolutionKernel::scratch_bytes() const {
  const uint64_t bytes = (is_widened_ ? widened_.scratch_bytes() : 0) + (call_ ? call_->plan.workspace_bytes() : 0);
  return bytes > 0 ? bytes + workspace_alignment : 0;
}

// How cuDNN sees the operand of an epilogue op: as the output, with an extent of 1 where it is broadcast.
Status ConvolutionKernel::operand_shape(const PrepareContext& context, const ConvolutionEpilogueOp& op, TensorShape* shape) {
  const heddle_tensor &y = *context.output(0), &operand = *context.input(static_cast<uint32_t>(op.input));
  if (op.kind == HEDDLE_OPERAND_SAME_SHAPE) {
    HEDDLE_PLUGIN_CHECK(check_layout(operand, "a fused operand"));
    *shape = tensor_shape(operand);
    return {};
  }
  *shape = tensor_shape(y);
  for (int k = 0; k < shape->rank; ++k)
    if (k != 1 || op.kind == HEDDLE_OPERAND_SCALAR) shape->dims[k] = 1;
  cudnn::set_dense_strides(y.layout.rank != 0, shape);
  return {};
}

Status ConvolutionKernel::plan_with(PrepareContext& context, size_t count) {
  const heddle_tensor& y = *context.output(0);
  const bool narrow = byte_width(y.dtype) == 2;
  is_widened_ = count == 0 && narrow && has_bias(context);
  uint64_t own = workspace_alignment;
  if (is_widened_) {
    HEDDLE_PLUGIN_CHECK(widened_.prepare(device(), *context.input(0), *context.input(1), y));
    own += widened_.scratch_bytes();
  }
  if (is_widened_) HEDDLE_PLUGIN_CHECK(check_scratch(context, own, "its operands and sums as f32 need"));
  auto call = std::make_unique<PlannedCall>();
  std::vector<uint32_t> inputs;
  cudnn::Graph graph;
  const auto take = [&](const TensorShape& shape, int64_t* id) -> Status {
    HEDDLE_PLUGIN_CHECK(graph.add_tensor(shape, id));
    if (call->count >= PlannedCall::max_tensors) return unsupported("more tensors than one plan takes");
    call->ids[call->count++] = *id;
    return {};
  };
  int64_t x = 0, w = 0, to = 0, sum = 0;
  for (const auto& [input, id] : {std::pair(uint32_t{0}, &x), std::pair(uint32_t{1}, &w)}) {
    HEDDLE_PLUGIN_CHECK(take(read_shape(*context.input(input)), id));
    inputs.push_back(input);
  }
  std::vector<int64_t> operands(count, -1);
  for (size_t i = 0; i < count; ++i) {
    if (epilogue_ops_[i].input < 0) continue;
    TensorShape operand;
    HEDDLE_PLUGIN_CHECK(operand_shape(context, epilogue_ops_[i], &operand));
    HEDDLE_PLUGIN_CHECK(take(operand, &operands[i]));
    inputs.push_back(static_cast<uint32_t>(epilogue_ops_[i].input));
  }
  HEDDLE_PLUGIN_CHECK(take(written_shape(y), &to));
  TensorShape between = tensor_shape(y);
  between.dtype = shape_.compute;
  between.is_virtual = true;
  sum = to;
  if (count > 0) HEDDLE_PLUGIN_CHECK(graph.add_tensor(between, &sum));
  HEDDLE_PLUGIN_CHECK(transposed_ ? graph.add_convolution(shape_, sum, w, x) : graph.add_convolution(shape_, x, w, sum));
  if (count > 0) HEDDLE_PLUGIN_CHECK(add_epilogue_ops(epilogue_ops_, count, operands, between, sum, to, &graph));
  cudnn::PlanRules rules;
  // Numbers of f16 and of bf16 have no more bits than tensor cores read of an f32.
  rules.converts = narrow && !is_widened_;
  rules.tensor_cores = narrow || (y.dtype == HEDDLE_F32 && device().tf32);
  rules.max_workspace_bytes = context.scratch_budget() > own ? context.scratch_budget() - own : 0;
  HEDDLE_PLUGIN_CHECK(planner_.made()->choose(graph, rules, &call->plan));
  call_ = std::move(call);
  call_inputs_ = std::move(inputs);
  done_ = count;
  return {};
}

// Tries all epilogue ops that cuDNN may have, then the bias, then the convolution alone. If cuDNN writes only a corner of the output, they
// are left to the pointwise kernel, which covers the whole.
Status ConvolutionKernel::choose_plan(PrepareContext& context) {
  Status status;
  size_t last = epilogue_ops_.size() + 1;
  const size_t most = is_cut_ ? 0 : epilogue_ops_of_cudnn(epilogue_ops_);
  for (const size_t count : {most, std::min<size_t>(most, 1), size_t{0}}) {
    if (count == last) continue;
    last = count;
    status = plan_with(context, count);
    if (status.ok() || status.code != HEDDLE_ERROR_UNSUPPORTED) return status;
  }
  return status;
}

Status ConvolutionKernel::prepare_rest(PrepareContext& context) {
  rest_inputs_.clear();
  has_rest_ = done_ < epilogue_ops_.size();
  if (!has_rest_) return {};
  const expression::Program program = rest_of(epilogue_ops_, done_, &rest_inputs_);
  const heddle_tensor& y = *context.output(0);
  const bool adds_bias = done_ == 0 && has_bias(context);
  std::vector<int64_t> bias_dims(static_cast<size_t>(y.rank), 1);
  heddle_tensor bias = adds_bias ? *context.input(2) : y;
  if (adds_bias) bias_dims[1] = bias.dims[0];
  bias.rank = y.rank;
  bias.dims = bias_dims.data();
  const heddle_tensor sums = is_widened_ ? widened(y) : y;
  std::vector<const heddle_tensor*> inputs = {&sums};
  for (size_t i = 0; i < rest_inputs_.size(); ++i) inputs.push_back(adds_bias && i == 0 ? &bias : context.input(rest_inputs_[i]));
  PointwiseLaunch::Conversion conversion;
  if (is_widened_) conversion.arithmetic = HEDDLE_F32;
  return rest_.prepare(device(), program, y, inputs.data(), conversion);
}

Status ConvolutionKernel::prepare(PrepareContext& context) {
  HEDDLE_PLUGIN_CHECK(read_shapes(context));
  call_ = nullptr;
  done_ = 0;
  is_widened_ = false;
  context.set_tiles(1);
  if (is_empty_) return {};
  if (!sums_nothing_) HEDDLE_PLUGIN_CHECK(choose_plan(context));
  if (scratch_bytes() > 0) context.set_scratch(scratch_bytes());
  return prepare_rest(context);
}

Status ConvolutionKernel::run(const RunContext& context, int64_t, int64_t) const {
  if (is_empty_) return {};
  const heddle_tensor& y = *context.outputs[0];
  const TraceRange range(trace_name());
  const uintptr_t at = reinterpret_cast<uintptr_t>(context.scratch) + workspace_alignment - 1;
  char* const scratch = scratch_bytes() > 0 ? reinterpret_cast<char*>(at / workspace_alignment * workspace_alignment) : nullptr;
  void* const sums = is_widened_ ? widened_.sums(scratch) : y.data;
  if (!call_ || is_cut_) HEDDLE_PLUGIN_CHECK(fill_zero(context, sums, is_widened_ ? widened_.sums_bytes() : y.byte_size));
  if (is_widened_) HEDDLE_PLUGIN_CHECK(widened_.start(*this, context, scratch));
  if (call_) {
    void* addresses[PlannedCall::max_tensors];
    int count = 0;
    for (const uint32_t input : call_inputs_)
      addresses[count++] = is_widened_ ? widened_.operand(scratch, input) : context.inputs[input]->data;
    addresses[count++] = sums;
    void* workspace = nullptr;
    if (call_->plan.workspace_bytes() > 0) workspace = scratch + (is_widened_ ? widened_.scratch_bytes() : 0);
    HEDDLE_PLUGIN_CHECK(stream_(context)->execute(*call_, addresses, workspace));
  }
  if (!has_rest_) return {};
  const void* inputs[max_convolution_epilogue_ops + 2] = {sums};
  for (size_t i = 0; i < rest_inputs_.size(); ++i) inputs[i + 1] = context.inputs[rest_inputs_[i]]->data;
  return rest_.start(*this, context, y.data, inputs);
}

template <bool transposed>
class Convolution : public ConvolutionKernel {
 public:
  Convolution() : ConvolutionKernel(transposed) {}
};

}  // namespace

void add_convolution(Builder& plugin) {
  plugin.resource<cudnn::Planner, cudnn::Planner>(cudnn::planner_name, HEDDLE_SCOPE_DEVICE, 1, "cuda");
  plugin.resource<cudnn::StreamHandle, cudnn::StreamHandle>(cudnn::stream_name, HEDDLE_SCOPE_STREAM, 1, "cuda");
  plugin.add(Op("Conv", "", 11).kernels_only().kernel<Convolution<false>>("cuda").kernel_name("cuda:cudnn_conv"));
  plugin.add(Op("ConvTranspose", "", 11).kernels_only().kernel<Convolution<true>>("cuda").kernel_name("cuda:cudnn_conv_transpose"));
}

}  // namespace heddle::cuda
