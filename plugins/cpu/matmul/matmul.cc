// MatMul: NumPy's matrix product with broadcast batches.
#include <algorithm>
#include <numeric>

#include "families.h"
#include "matmul/matmul_kernel.h"
#include "matmul/matmul_plain.h"
#include "shared/axes.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr heddle_dtype_set matmul_dtypes = dtypes<f16, bf16, float, double, int32_t, int64_t, uint32_t, uint64_t>();

Status infer_matmul(InferContext& context) {
  MatMulProblem problem;
  std::vector<int64_t> dims;
  HEDDLE_PLUGIN_CHECK(resolve_matmul(context.dims(0), context.dims(1), &problem, &dims));
  HEDDLE_PLUGIN_CHECK(check_rank(dims.size()));
  context.set_dims(0, dims);
  return {};
}

void matmul_cost(CostContext& context) {
  const Dims a = context.dims(0);
  context.set_flops(2 * context.output_elements(0) * static_cast<double>(a.rank > 0 ? a[-1] : 1));
}

// f32, f16 and bf16.
class TiledMatMul {
 public:
  Status create(const CreateContext& context) {
    driver_.create(context);
    return onednn::read_epilogue(context, &epilogue_);
  }
  Status prepare(PrepareContext& context) {
    MatMulProblem problem;
    std::vector<int64_t> dims;
    HEDDLE_PLUGIN_CHECK(resolve_matmul(dims_of(*context.input(0)), dims_of(*context.input(1)), &problem, &dims));
    return driver_.prepare(context, std::move(problem), epilogue_);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const { return driver_.run(context, begin, end); }

 private:
  onednn::Epilogue epilogue_;
  MatMulDriver driver_;
};

class FusedMatMul : public TiledMatMul {
 public:
  static bool accepts_epilogue(const CreateContext& context) {
    const heddle_type* a = context.input(0);
    const heddle_type* b = context.input(1);
    // The last dimension of y is the matrix's columns only when b has some.
    if (!a || !b || a->rank < 2 || b->rank < 2 || context.epilogue_op_count() > MatMulDriver::max_epilogue_ops) return false;
    return onednn::accepts(context, {HEDDLE_OPERAND_NONE, HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR});
  }
};

// The dtypes that no library here has.
class PlainMatMul {
 public:
  Status prepare(PrepareContext& context) {
    std::vector<int64_t> dims;
    HEDDLE_PLUGIN_CHECK(resolve_matmul(dims_of(*context.input(0)), dims_of(*context.input(1)), &problem_, &dims));
    simplify(&problem_);
    const int64_t outputs = context.output(0)->element_count;
    tiling_.plan(context, static_cast<double>(outputs) * static_cast<double>(std::max<int64_t>(1, problem_.depth)), 1.0, problem_.flops());
    rows_at_once_ =
        context.output(0)->dtype == HEDDLE_F64 ? rows_by_panels(problem_.images() * problem_.rows, problem_.columns, problem_.depth) : 1;
    if (outputs == 0) context.set_tiles(0);
    return {};
  }
  // Tiles are shares of the rows of all images.
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    const int64_t all = problem_.images() * problem_.rows;
    Tiling::Range range = tiling_.range((all + rows_at_once_ - 1) / rows_at_once_, begin, end);
    range = {range.first * rows_at_once_, std::min(all, range.last * rows_at_once_)};
    CancellationPoll poll(context);
    with_dtype(context.outputs[0]->dtype, [&](auto tag) {
      for (int64_t row = range.first; row < range.last && !poll.stopped();) {
        const int64_t image = row / problem_.rows, first = row % problem_.rows;
        const int64_t rows = std::min(problem_.rows - first, range.last - row);
        run_rows<typename decltype(tag)::type>(context, image, first, rows, poll);
        row += rows;
      }
    });
    return poll.status();
  }

 private:
  template <class T>
  void run_rows(const RunContext& context, int64_t image, int64_t first, int64_t rows, CancellationPoll& poll) const {
    StridedProduct<T> product;
    product.rows = rows;
    product.columns = problem_.columns;
    product.depth = problem_.depth;
    product.a = input<T>(context, 0).data + image_offset(problem_, problem_.a, image) + first * problem_.a.row;
    product.b = input<T>(context, 1).data + image_offset(problem_, problem_.b, image);
    product.y = output<T>(context, 0).data + image_offset(problem_, problem_.y, image) + first * problem_.y.row;
    product.a_row = problem_.a.row;
    product.b_row = problem_.b.row;
    product.y_row = problem_.y.row;
    multiply(product, poll);
  }

  MatMulProblem problem_;
  Tiling tiling_;
  int64_t rows_at_once_ = 1;
};

// Rows of what a product takes and gives, however many matrices there are: [rows, columns]. They are counted: of no columns a -1 would
// be anything.
GradientValue as_matrix(GradientContext& g, GradientValue value, int rank) {
  if (rank == 2) return value;
  const GradientValue rows = g.emit("ReduceProd", {g.emit("Shape", {value}, {{"end", -1}})});
  return reshape(g, value, g.emit("Concat", {rows, g.emit("Shape", {value}, {{"start", -1}})}, {{"axis", 0}}));
}

GradientValue transposed(GradientContext& g, GradientValue value, int rank) {
  std::vector<int64_t> perm(static_cast<size_t>(rank));
  std::iota(perm.begin(), perm.end(), 0);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return g.emit("Transpose", {value}, {{"perm", perm}});
}

// Of one matrix B for all of A, as in a layer: no transposed copies, and one product over all rows for B.
void by_one_matrix(GradientContext& g) {
  const int rank = g.input_type(0).rank;
  const GradientValue rows = as_matrix(g, g.dy(0), rank);
  if (g.wants(0)) {
    const GradientValue product = g.emit("Gemm", {rows, g.x(1)}, {{"transB", 1}});
    g.give(0, rank == 2 ? product : reshape(g, product, shape_of(g, g.x(0))));
  }
  if (g.wants(1)) g.give(1, g.emit("Gemm", {as_matrix(g, g.x(0), rank), rows}, {{"transA", 1}}));
}

Status matmul_gradient(GradientContext& g) {
  const int a_rank = g.input_type(0).rank, b_rank = g.input_type(1).rank;
  if (a_rank >= 2 && b_rank == 2) return by_one_matrix(g), Status();
  // A vector is a row of a matrix on the left and a column on the right.
  GradientValue a = g.x(0), b = g.x(1), dy = g.dy(0);
  if (b_rank == 1) {
    b = g.emit("Unsqueeze", {b, g.ints({1})});
    dy = g.emit("Unsqueeze", {dy, g.ints({-1})});
  }
  if (a_rank == 1) {
    a = g.emit("Unsqueeze", {a, g.ints({0})});
    dy = g.emit("Unsqueeze", {dy, g.ints({-2})});
  }
  if (g.wants(0)) {
    const GradientValue product = sum_to(g, g.emit("MatMul", {dy, transposed(g, b, std::max(b_rank, 2))}), a);
    g.give(0, a_rank == 1 ? g.emit("Squeeze", {product, g.ints({0})}) : product);
  }
  if (g.wants(1)) {
    const GradientValue product = sum_to(g, g.emit("MatMul", {transposed(g, a, std::max(a_rank, 2)), dy}), b);
    g.give(1, b_rank == 1 ? g.emit("Squeeze", {product, g.ints({1})}) : product);
  }
  return {};
}

}  // namespace

void add_matmul(Builder& plugin) {
  const std::vector<heddle_dtype_set> f32(2, dtypes<float>());
  const std::vector<heddle_dtype_set> halves(2, dtypes<f16, bf16>());
  const std::vector<heddle_dtype_set> others(2, matmul_dtypes & ~dtypes<float, f16, bf16>());
  Op op("MatMul", "", 13);
  op.doc(
        "Multiplies matrices as NumPy does: the last two axes are matrices, and those before broadcast. A vector is a row on the left and "
        "a column on the right.")
      .formula("Y = A B")
      .shapes("A is [..., M, K], B is [..., K, N]; Y is [..., M, N], without M or N where A or B is a vector");
  op.in("A", matmul_dtypes).in("B", matmul_dtypes);
  op.out("Y").infer(infer_matmul).cost<matmul_cost>().gradient<matmul_gradient>();
  op.cpu<FusedMatMul>(f32).kernel_name("cpu:matmul");
  op.cpu<TiledMatMul>(halves).kernel_name("cpu:matmul_float_tiles");
  op.cpu<PlainMatMul>(others).kernel_name("cpu:matmul_plain");
  op.example("f32[2,3] = -4 -3 3 -4 3 -3, f32[3,2] = -4 -3 3 -4 3 -3 -> f32[2,2] = 16 15 16 9", "ONNX Runtime")
      .example("i32[3] = 1 0 2, i32[2,3,2] = 1 0 0 1 1 1 0 1 2 0 1 0 -> i32[2,2] = 3 2 2 1", "ONNX Runtime");
  plugin.add(op);
}

}  // namespace heddle::cpu
