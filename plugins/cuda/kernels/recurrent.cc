// Implements RNN, GRU and LSTM: X of all steps times W as one product, and in each step the states times R and a launch that computes new
// states from both; or, if R is small, one launch for all steps.
//
// The directions are a batch of their products. The product of a step does not add to the product of X, although cuBLASLt could: the rows
// of a step of two directions have no common distance, and the launch that follows reads both.
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "generate/operators/recurrent_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/kernel_families.h"
#include "library/matrix_product.h"

namespace heddle::cuda {
namespace {

using operators::dims_of;
using operators::RecurrentActivation;
using Kind = RecurrentActivation::Kind;

// Names the cells' attributes, and their default functions.
template <RecurrentCell cell>
struct Names;
template <>
struct Names<RecurrentCell::rnn> {
  static const char* variant() { return nullptr; }
  static std::vector<Kind> activations() { return {Kind::tanh}; }
};
template <>
struct Names<RecurrentCell::gru> {
  static const char* variant() { return "linear_before_reset"; }
  static std::vector<Kind> activations() { return {Kind::sigmoid, Kind::tanh}; }
};
template <>
struct Names<RecurrentCell::lstm> {
  static const char* variant() { return "input_forget"; }
  static std::vector<Kind> activations() { return {Kind::sigmoid, Kind::tanh, Kind::tanh}; }
};

class RecurrentKernel : public GpuKernel {
 public:
  Status prepare(PrepareContext& context);
  Status run(const RunContext& context, int64_t, int64_t) const;

 protected:
  // Called in create.
  Status begin(const CreateContext& context, RecurrentCell cell, const char* variant, const std::vector<Kind>& activations);

 private:
  using Kernel = RecurrentLaunches::Kernel;
  Status compile(const Operands& operands);
  Status choose_products(uint64_t budget);
  // Returns the product of rows of states or of X with `m` rows of weights, each of `depth` elements; the resulting rows lie `width` apart.
  ProductShape product(int64_t m, int64_t rows, int64_t depth, int64_t width) const;
  Status step(const RunContext& context, int64_t time, MatrixProduct::Operands operands) const;

  RecurrentLaunches launches_;
  Needed<ProductLibrary> library_;
  heddle_dtype dtype_ = HEDDLE_F32;
  bool multiplies_input_ = false;
  MatrixProduct input_, state_, hidden_;  // hidden_: GRU's, with the state that was reset
  uint64_t workspace_ = 0;
  std::shared_ptr<const Program> program_;
  std::array<cudaKernel_t, 3> kernels_ = {};
  std::array<Launch, 3> launched_;
};

Status RecurrentKernel::begin(const CreateContext& context, RecurrentCell cell, const char* variant, const std::vector<Kind>& activations) {
  const Attributes& a = context.attributes;
  launches_.cell = cell;
  HEDDLE_PLUGIN_CHECK(on(context));
  HEDDLE_PLUGIN_CHECK(operators::read_recurrent_shape(a, dims_of(*context.input(operators::port_x)),
                                                      dims_of(*context.input(operators::port_w)), launches_.gates(), &launches_.shape));
  launches_.backward = a.s("direction") == "reverse";
  launches_.clip = a.f("clip");
  launches_.variant = variant && a.i(variant) != 0;
  HEDDLE_PLUGIN_CHECK(operators::parse_activations(a, launches_.shape.directions, activations, &launches_.activations));
  return library_.ask(context, ProductLibrary::resource);
}

Status RecurrentKernel::compile(const Operands& operands) {
  KernelSource source;
  launches_.choose(operands, &source);
  HEDDLE_PLUGIN_CHECK(Program::make(device(), source.text, source.contract, &program_));
  for (uint32_t i = 0; i < source.entries.size(); ++i) {
    HEDDLE_PLUGIN_CHECK(program_->kernel(source.entries[i].c_str(), &kernels_[i]));
    launched_[i] = launches_.launch(static_cast<Kernel>(i));
    HEDDLE_PLUGIN_CHECK(launched_[i].check());
  }
  return {};
}

ProductShape RecurrentKernel::product(int64_t m, int64_t rows, int64_t depth, int64_t width) const {
  const operators::RecurrentShape& s = launches_.shape;
  ProductShape shape;
  shape.dtype = dtype_;
  shape.tf32 = device().tf32;
  shape.m = m;
  shape.n = rows;
  shape.k = depth;
  shape.batch = s.directions;
  shape.a = {true, depth, launches_.gates() * s.hidden * depth};
  shape.b = {false, depth, rows * depth};
  shape.d = {false, width, rows * width};
  const auto element = static_cast<int64_t>(byte_width(dtype_));
  int64_t bytes = MatrixProduct::given_alignment;
  for (const int64_t step : {shape.a.step, shape.b.step, shape.d.step}) bytes = std::gcd(bytes, step * element);
  shape.alignment = static_cast<uint32_t>(bytes);
  return shape;
}

Status RecurrentKernel::choose_products(uint64_t budget) {
  const operators::RecurrentShape& s = launches_.shape;
  const int64_t width = launches_.gates() * s.hidden;
  const cublasLtHandle_t handle = library_.made()->handle();
  workspace_ = 0;
  const auto choose = [&](const ProductShape& shape, MatrixProduct* product) -> Status {
    HEDDLE_PLUGIN_CHECK(product->choose(device(), handle, shape, budget));
    workspace_ = std::max(workspace_, product->workspace_bytes());
    return {};
  };
  multiplies_input_ = s.times > 0 && s.inputs > 0;
  if (multiplies_input_) {
    ProductShape shape = product(width, s.times * s.batches, s.inputs, width);
    shape.b.step = 0;  // every direction reads the same X
    HEDDLE_PLUGIN_CHECK(choose(shape, &input_));
  }
  if (s.times == 0 || launches_.walks()) return {};
  HEDDLE_PLUGIN_CHECK(choose(product(launches_.resets_before() ? 2 * s.hidden : width, s.batches, s.hidden, width), &state_));
  if (!launches_.resets_before()) return {};
  ProductShape shape = product(s.hidden, s.batches, s.hidden, width);
  const auto element = static_cast<int64_t>(byte_width(dtype_));
  for (const int64_t offset : {2 * s.hidden, 2 * s.hidden * s.hidden})
    shape.alignment = static_cast<uint32_t>(std::gcd<int64_t>(shape.alignment, offset * element));
  return choose(shape, &hidden_);
}

Status RecurrentKernel::prepare(PrepareContext& context) {
  const heddle_prepare_context& raw = *context.raw();
  const Operands operands = {raw.inputs, raw.outputs, raw.input_count, raw.output_count};
  const heddle_tensor& x = *context.input(operators::port_x);
  dtype_ = x.dtype;
  operators::set_sequences(dims_of(x), &launches_.shape);
  context.reads_on_host({});
  const bool idle = operands.writes_nothing();
  context.set_tiles(idle ? 0 : 1);
  if (idle) return {};
  HEDDLE_PLUGIN_CHECK(compile(operands));
  const uint64_t own = launches_.scratch().bytes + MatrixProduct::workspace_alignment, budget = context.scratch_budget();
  HEDDLE_PLUGIN_CHECK(check_scratch(context, own));
  HEDDLE_PLUGIN_CHECK(choose_products(std::min(budget - own, MatrixProduct::max_workspace)));
  context.set_scratch(own + workspace_);
  return {};
}

// `operands` already holds the workspace.
Status RecurrentKernel::step(const RunContext& context, int64_t time, MatrixProduct::Operands operands) const {
  const operators::RecurrentShape& s = launches_.shape;
  const RecurrentLaunches::Scratch& at = launches_.scratch();
  const auto stream = static_cast<cudaStream_t>(context.stream);
  const auto element = static_cast<int64_t>(byte_width(dtype_));
  const auto start = [&](Kernel kernel) {
    Launch launched = launched_[kernel];
    RecurrentLaunches::at_time(time, &launched);
    return start_launch(*this, context, launched, kernels_[kernel]);
  };
  auto* const scratch = static_cast<char*>(context.scratch);
  const auto* const r = static_cast<const char*>(context.inputs[operators::port_r]->data);
  operands.a = r;
  operands.b = scratch + at.h;
  operands.d = scratch + at.products;
  HEDDLE_PLUGIN_CHECK(state_.enqueue(device(), library_.made()->handle(), operands, stream));
  if (launches_.resets_before()) {
    HEDDLE_PLUGIN_CHECK(start(Kernel::reset));
    operands.a = r + 2 * s.hidden * s.hidden * element;
    operands.b = scratch + at.reset;
    operands.d = scratch + at.products + 2 * s.hidden * element;
    HEDDLE_PLUGIN_CHECK(hidden_.enqueue(device(), library_.made()->handle(), operands, stream));
  }
  return start(Kernel::step);
}

Status RecurrentKernel::run(const RunContext& context, int64_t, int64_t) const {
  const operators::RecurrentShape& s = launches_.shape;
  const RecurrentLaunches::Scratch& at = launches_.scratch();
  const TraceRange range(trace_name());
  auto* const scratch = static_cast<char*>(context.scratch);
  const auto behind = reinterpret_cast<uintptr_t>(scratch) + at.bytes;
  MatrixProduct::Operands operands;
  operands.workspace = reinterpret_cast<void*>((behind + MatrixProduct::workspace_alignment - 1) / MatrixProduct::workspace_alignment *
                                               MatrixProduct::workspace_alignment);
  if (!launches_.walks()) HEDDLE_PLUGIN_CHECK(start_launch(*this, context, launched_[Kernel::begin], kernels_[Kernel::begin]));
  if (multiplies_input_) {
    MatrixProduct::Operands of_input = operands;
    of_input.a = context.inputs[operators::port_w]->data;
    of_input.b = context.inputs[operators::port_x]->data;
    of_input.d = scratch + at.projections;
    HEDDLE_PLUGIN_CHECK(input_.enqueue(device(), library_.made()->handle(), of_input, static_cast<cudaStream_t>(context.stream)));
  } else if (s.times > 0) {
    HEDDLE_PLUGIN_CHECK(fill_zero(context, scratch + at.projections, at.products - at.projections));
  }
  if (launches_.walks()) return start_launch(*this, context, launched_[RecurrentLaunches::walk], kernels_[RecurrentLaunches::walk]);
  for (int64_t time = 0; time < s.times; ++time) {
    if (is_cancelled(context)) return cancelled();
    HEDDLE_PLUGIN_CHECK(step(context, time, operands));
  }
  return {};
}

template <RecurrentCell cell>
class Recurrent : public RecurrentKernel {
 public:
  Status create(const CreateContext& context) { return begin(context, cell, Names<cell>::variant(), Names<cell>::activations()); }
};

}  // namespace

void add_recurrent(Builder& plugin) {
  plugin.add(Op("RNN", "", 14)
                 .kernels_only()
                 .kernel<Recurrent<RecurrentCell::rnn>>("cuda")
                 .kernel_name("cuda:cublaslt_rnn")
                 .kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("GRU", "", 14)
                 .kernels_only()
                 .kernel<Recurrent<RecurrentCell::gru>>("cuda")
                 .kernel_name("cuda:cublaslt_gru")
                 .kernel_flags(HEDDLE_KERNEL_USES_FAULT));
  plugin.add(Op("LSTM", "", 14)
                 .kernels_only()
                 .kernel<Recurrent<RecurrentCell::lstm>>("cuda")
                 .kernel_name("cuda:cublaslt_lstm")
                 .kernel_flags(HEDDLE_KERNEL_USES_FAULT));
}

}  // namespace heddle::cuda
