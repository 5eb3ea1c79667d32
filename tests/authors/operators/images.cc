// Kernels that the plan negotiates with: a layout (formats), operators fused into them (accepts_epilogue), shapes that depend on a content.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "gradient_emit.h"
#include "heddle/expression_evaluate.h"
#include "heddle/op.h"

using namespace heddle::plugin;
using heddle::expression::Evaluator;
using heddle::expression::Program;

namespace {

template <class T>
class ChannelScale {
 public:
  static std::vector<heddle_format> formats(const CreateContext& c) {
    heddle_format row_major = {}, last = {};
    last.inputs[0] = last.outputs[0] = channels_last(c.input(0)->rank);
    return {last, row_major};
  }
  Status prepare(PrepareContext& c) {
    int64_t strides[HEDDLE_MAX_RANK] = {};
    strides_of(*c.input(0), strides);
    channels_ = c.input(0)->dims[1];
    stride_ = strides[1];
    elements_ = Tiles::of(c.input(0)->element_count, 16384);
    c.set_tiles(elements_.count());
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> x = input<T>(c, 0), scale = input<T>(c, 1);
    const Out<T> y = output<T>(c, 0);
    for (const int64_t i : elements_.elements(begin, end)) y[i] = x[i] * scale[i / stride_ % channels_];
    return {};
  }

 private:
  int64_t channels_ = 1, stride_ = 1;
  Tiles elements_;
};

heddle_status channel_scale_gradient(const heddle_gradient_builder* b) {
  const heddle_value_handle x = b->inputs[0], scale = b->inputs[1], dy = b->output_gradients[0];
  const heddle_value_handle product[] = {dy, scale};
  const heddle_status status = b->emit(b, "authors", "ChannelScale", product, 2, &b->input_gradients[0], 1, nullptr, 0);
  return status == HEDDLE_OK ? emit_einsum(b, "nchw,nchw->c", {dy, x}, &b->input_gradients[1]) : status;
}

// The epilogue's ops, prepared for rows of the product.
template <class T>
class Project {
 public:
  static bool accepts_epilogue(const CreateContext& c) {
    std::vector<EpilogueOp> epilogue_ops;
    return read_epilogue_ops(c, &epilogue_ops).ok();
  }
  Status create(const CreateContext& c) { return read_epilogue_ops(c, &epilogue_ops_); }
  Status prepare(PrepareContext& c) {
    depth_ = c.input(0)->dims[1];
    columns_ = c.input(1)->dims[1];
    rows_ = Tiles::of(c.input(0)->dims[0], 65536 / std::max<int64_t>(depth_ * columns_, 1));
    c.set_tiles(rows_.count());
    uint64_t scratch = 0;
    for (const EpilogueOp& epilogue_op : epilogue_ops_) scratch = std::max(scratch, epilogue_op.evaluator.scratch_bytes());
    c.set_scratch(0, scratch);
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<T> a = input<T>(c, 0), b = input<T>(c, 1);
    for (const int64_t row : rows_.elements(begin, end)) {
      T* const y = output<T>(c, 0).data + row * columns_;
      std::fill(y, y + columns_, T{0});
      for (int64_t k = 0; k < depth_; ++k)
        for (int64_t j = 0; j < columns_; ++j) y[j] += a[row * depth_ + k] * b[k * columns_ + j];
      for (const EpilogueOp& epilogue_op : epilogue_ops_) apply(c, epilogue_op, row, y);
    }
    return {};
  }

 private:
  struct EpilogueOp {
    Evaluator<T> evaluator;
    int32_t operand;  // input, or -1
    int32_t kind;
  };
  static Status read_epilogue_ops(const CreateContext& c, std::vector<EpilogueOp>* epilogue_ops) {
    for (uint32_t i = 0; i < c.epilogue_op_count(); ++i) {
      const heddle_epilogue_op& of = c.epilogue_op(i);
      if (of.operand_kind == HEDDLE_OPERAND_PER_CHANNEL) return unsupported("y has no channels");
      Program program;
      program.inputs = {"acc"};
      if (of.operand_input >= 0) program.inputs.push_back("operand");
      std::string error;
      if (!heddle::expression::parse(of.expression, {}, program, error)) return unsupported(error);
      const auto evaluator = Evaluator<T>::of(program, error);
      if (!evaluator) return unsupported(error);
      epilogue_ops->push_back({*evaluator, of.operand_input, of.operand_kind});
    }
    return {};
  }
  void apply(const RunContext& c, const EpilogueOp& epilogue_op, int64_t row, T* y) const {
    T* const scratch = thread_scratch<T>(c);
    if (epilogue_op.operand < 0) return epilogue_op.evaluator.run(columns_, {{y, 1}}, y, scratch);
    const In<T> operand = input<T>(c, static_cast<uint32_t>(epilogue_op.operand));
    const T* const data = operand.data + (epilogue_op.kind == HEDDLE_OPERAND_SAME_SHAPE ? row * columns_ : 0);
    epilogue_op.evaluator.run(columns_, {{y, 1}, {data, epilogue_op.kind == HEDDLE_OPERAND_SCALAR ? 0 : 1}}, y, scratch);
  }
  int64_t depth_ = 0, columns_ = 0;
  Tiles rows_;
  std::vector<EpilogueOp> epilogue_ops_;
};

void project_cost(CostContext& c) {
  c.set_flops(2 * c.output_elements(0) * static_cast<double>(c.dims(0)[1]));
}

heddle_status project_gradient(const heddle_gradient_builder* b) {
  const heddle_value_handle dy = b->output_gradients[0];
  const heddle_status status = emit_einsum(b, "mn,kn->mk", {dy, b->inputs[1]}, &b->input_gradients[0]);
  return status == HEDDLE_OK ? emit_einsum(b, "mk,mn->kn", {b->inputs[0], dy}, &b->input_gradients[1]) : status;
}

Status infer_fit_to(InferContext& c) {
  const Dims x = c.dims(0), size = c.dims(1);
  if (size.rank != 1 || size[0] != x.rank)
    return invalid("size is " + dims_text(size) + ", expected " + std::to_string(x.rank) + " numbers");
  if (!c.known(1)) return invalid("the content of size is not known");
  const std::vector<int64_t> dims = c.ints(1);
  for (const int64_t dim : dims)
    if (dim < 0) return invalid("size " + dims_text({dims.data(), x.rank}) + " is negative");
  c.set_dims(0, dims);
  return {};
}

// Takes rows of y along its last axis, each from the middle of a row of x. It uses the shape of y alone: the content of `size` may have
// changed since.
class FitTo {
 public:
  Status prepare(PrepareContext& c) {
    const heddle_tensor& y = *c.output(0);
    width_ = byte_width(y.dtype);
    const Dims dims = {y.dims, y.rank};
    rows_ = Tiles::of(y.rank == 0 ? 1 : dims.count(0, y.rank - 1), y.rank == 0 ? 1 : 16384 / std::max<int64_t>(dims[-1], 1));
    c.set_tiles(rows_.count());
    return {};
  }
  Status run(const RunContext& c, int64_t begin, int64_t end) const {
    const In<void> x = input<void>(c, 0);
    const Out<void> y = output<void>(c, 0);
    const int last = y.dims.rank - 1;
    const int64_t columns = last < 0 ? 1 : y.dims[last], source_columns = last < 0 ? 1 : x.dims[last],
                  shift = (source_columns - columns) / 2;
    if (columns == 0) return {};
    const int64_t first = std::max<int64_t>(-shift, 0), count = std::min(columns, source_columns);
    for (const int64_t row : rows_.elements(begin, end)) {
      char* const to = static_cast<char*>(y.data) + bytes(row * columns);
      int64_t from = 0;
      if (!source_row(x.dims, y.dims, row, &from)) {
        std::memset(to, 0, bytes(columns));
        continue;
      }
      std::memset(to, 0, bytes(first));
      std::memcpy(to + bytes(first), static_cast<const char*>(x.data) + bytes(from * source_columns + std::max<int64_t>(shift, 0)),
                  bytes(count));
      std::memset(to + bytes(first + count), 0, bytes(columns - first - count));
    }
    return {};
  }

 private:
  size_t bytes(int64_t elements) const { return static_cast<size_t>(elements) * width_; }
  // Finds the row of x that row `row` of y is made of; returns false if there is none.
  static bool source_row(Dims x, Dims y, int64_t row, int64_t* from) {
    int64_t stride = 1;
    for (int axis = y.rank - 2; axis >= 0; --axis) {
      const int64_t at = row % y[axis] + (x[axis] - y[axis]) / 2;
      if (at < 0 || at >= x[axis]) return false;
      *from += at * stride;
      stride *= x[axis];
      row /= y[axis];
    }
    return y.rank == 0 || x[-1] > 0;
  }
  size_t width_ = 1;
  Tiles rows_;
};

}  // namespace

HEDDLE_PLUGIN("authors_images", "1.0", plugin) {
  constexpr heddle_dtype_set real = dtypes<float, double>();
  plugin.add(Op("ChannelScale", "authors")
                 .doc("y = x * scale of its channel, in the layout of x")
                 .in("x", real)
                 .dims("N C H W")
                 .in("scale", real)
                 .dims("C")
                 .out("y", same_as("x"))
                 .in_place("y", "x")
                 .gradient(channel_scale_gradient)
                 .example("f32[1,2,1,3] = 1 2 3 4 5 6, f32[2] = 10 -1 -> f32[1,2,1,3] = 10 20 30 -4 -5 -6", "by hand")
                 .example("f64[2,3,4,5], f64[3]")
                 .cpu<ChannelScale<float>>({dtypes<float>()})
                 .cpu<ChannelScale<double>>({dtypes<double>()}));
  plugin.add(Op("Project", "authors")
                 .doc("a small matrix product that takes the operators behind it along")
                 .in("a", real)
                 .dims("M K")
                 .in("b", real)
                 .dims("K N")
                 .out("y")
                 .dims("M N")
                 .cost<project_cost>()
                 .gradient(project_gradient)
                 .example("f32[2,3] = 1 2 3 4 5 6, f32[3,2] = 1 0 0 1 1 1 -> f32[2,2] = 4 5 10 11", "by hand")
                 .example("f64[70,11], f64[11,300]")
                 .cpu<Project<float>>({dtypes<float>()})
                 .cpu<Project<double>>({dtypes<double>()}));
  plugin.add(Op("FitTo", "authors")
                 .doc("the middle of x, with zeros around it where it is too small")
                 .in("x")
                 .shape_operand("size")
                 .out("y")
                 .infer(infer_fit_to)
                 .gradient("Shape", {"x"}, {"t0"}, "")
                 .gradient("FitTo", {"dy", "t0"}, {"dx"})
                 .example("f32[2,4] = 1 2 3 4 5 6 7 8, i64[2] = 4 2 -> f32[4,2] = 0 0 2 3 6 7 0 0", "by hand")
                 .example("i16[3] = 1 2 3, i64[1] = 6 -> i16[6] = 0 1 2 3 0 0", "by hand")
                 .example("f64[] = 7, i64[0] -> f64[] = 7", "by hand")
                 .example("f32[2,3,4], i64[3] = 5 1 2")
                 .cpu<FitTo>());
}
