// Gemm: y = alpha a' b' + beta c, with a and b transposed if the attributes say so.
//
// alpha, beta and c are ops of the epilogue: a plain bias costs nothing, the rest is done on the hot tile.
#include <algorithm>
#include <charconv>
#include <type_traits>

#include "families.h"
#include "matmul/matmul_kernel.h"
#include "matmul/matmul_plain.h"
#include "shared/dims.h"
#include "shared/dtype_dispatch.h"
#include "shared/scalar.h"
#include "shared/tile_cap.h"
#include "shared/tiling.h"
#include "support/cpu_api.h"
#include "support/gradients.h"

namespace heddle::cpu {
namespace {

constexpr heddle_dtype_set gemm_dtypes = dtypes<f16, bf16, float, double, int32_t, int64_t, uint32_t, uint64_t>();

struct GemmAttributes {
  GemmAttributes() = default;
  explicit GemmAttributes(const Attributes& a)
      : alpha(a.f("alpha", 1)), beta(a.f("beta", 1)), transpose_a(a.i("transA") != 0), transpose_b(a.i("transB") != 0) {}
  Status resolve(Dims a, Dims b, MatMulProblem* problem) const { return resolve_gemm(transpose_a, transpose_b, a, b, problem); }
  double alpha = 1, beta = 1;
  bool transpose_a = false, transpose_b = false;
};

// Finds how c broadcasts to [rows, columns].
Status kind_of_c(Dims c, const MatMulProblem& problem, int32_t* kind) {
  const int64_t rows = c.rank < 2 ? 1 : c[0], columns = c.rank < 1 ? 1 : c[-1];
  const bool fits = c.rank <= 2 && (rows == 1 || rows == problem.rows) && (columns == 1 || columns == problem.columns);
  if (!fits)
    return invalid("C is " + dims_text(c) + ", expected a shape that broadcasts to [" + std::to_string(problem.rows) + ", " +
                   std::to_string(problem.columns) + "]");
  if (rows == problem.rows && columns == problem.columns && rows != 1)
    *kind = HEDDLE_OPERAND_SAME_SHAPE;
  else if (rows == 1 && columns == 1)
    *kind = HEDDLE_OPERAND_SCALAR;
  else
    *kind = rows == 1 ? HEDDLE_OPERAND_LAST_DIMENSION : onednn::operand_per_row;
  return {};
}

std::string number_text(double value) {
  char buffer[40];
  return {buffer, std::to_chars(buffer, buffer + sizeof(buffer), value).ptr};
}

Status infer_gemm(InferContext& context) {
  const GemmAttributes attributes(context.attributes);
  MatMulProblem problem;
  HEDDLE_PLUGIN_CHECK(attributes.resolve(context.dims(0), context.dims(1), &problem));
  int32_t kind = 0;
  if (context.has_input(2)) HEDDLE_PLUGIN_CHECK(kind_of_c(context.dims(2), problem, &kind));
  context.set_dims(0, std::vector<int64_t>{problem.rows, problem.columns});
  return {};
}

// alpha and beta cost nothing where they are 1; C is added once.
void gemm_cost(CostContext& context) {
  const Dims a = context.dims(0);
  const double y = context.output_elements(0), depth = static_cast<double>(a[context.attributes.i("transA") != 0 ? 0 : 1]);
  context.set_flops(2 * y * depth + (context.has_input(2) ? y : 0));
}

// The kernel for f32, f16 and bf16.
class TiledGemm {
 public:
  Status create(const CreateContext& context) {
    attributes_ = GemmAttributes(context.attributes);
    driver_.create(context);
    HEDDLE_PLUGIN_CHECK(onednn::read_epilogue(context, &fused_));
    has_c_ = context.input(2) != nullptr;
    // Operands of epilogue ops follow the schema's three inputs; without C, input 2 may be one of them.
    for (const onednn::EpilogueOp& epilogue_op : fused_)
      if (epilogue_op.operand_input == 2) has_c_ = false;
    return {};
  }
  Status prepare(PrepareContext& context) {
    MatMulProblem problem;
    HEDDLE_PLUGIN_CHECK(attributes_.resolve(dims_of(*context.input(0)), dims_of(*context.input(1)), &problem));
    onednn::Epilogue epilogue;
    if (attributes_.alpha != 1)
      HEDDLE_PLUGIN_CHECK(
          onednn::make_epilogue_op("mul(acc, " + number_text(attributes_.alpha) + ")", -1, HEDDLE_OPERAND_NONE, &epilogue.emplace_back()));
    if (has_c_ && attributes_.beta != 0) {
      int32_t kind = 0;
      HEDDLE_PLUGIN_CHECK(kind_of_c(dims_of(*context.input(2)), problem, &kind));
      const std::string text =
          attributes_.beta == 1 ? "add(acc, operand)" : "add(acc, mul(operand, " + number_text(attributes_.beta) + "))";
      HEDDLE_PLUGIN_CHECK(onednn::make_epilogue_op(text, 2, kind, &epilogue.emplace_back()));
    }
    epilogue.insert(epilogue.end(), fused_.begin(), fused_.end());
    return driver_.prepare(context, std::move(problem), std::move(epilogue));
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const { return driver_.run(context, begin, end); }

 private:
  GemmAttributes attributes_;
  bool has_c_ = false;
  onednn::Epilogue fused_;
  MatMulDriver driver_;
};

class FusedGemm : public TiledGemm {
 public:
  static bool accepts_epilogue(const CreateContext& context) {
    if (context.epilogue_op_count() + 2 > MatMulDriver::max_epilogue_ops) return false;
    return onednn::accepts(context, {HEDDLE_OPERAND_NONE, HEDDLE_OPERAND_SAME_SHAPE, HEDDLE_OPERAND_LAST_DIMENSION, HEDDLE_OPERAND_SCALAR});
  }
};

// The kernel for the dtypes that oneDNN does not have here.
class PlainGemm {
 public:
  Status create(const CreateContext& context) {
    attributes_ = GemmAttributes(context.attributes);
    return {};
  }
  Status prepare(PrepareContext& context) {
    HEDDLE_PLUGIN_CHECK(attributes_.resolve(dims_of(*context.input(0)), dims_of(*context.input(1)), &problem_));
    const double products =
        static_cast<double>(context.output(0)->element_count) * static_cast<double>(std::max<int64_t>(1, problem_.depth));
    tiling_.plan(context, products, 1.0, problem_.flops());
    rows_at_once_ = context.output(0)->dtype == HEDDLE_F64 ? rows_by_panels(problem_.rows, problem_.columns, problem_.depth) : 1;
    if (context.output(0)->element_count == 0) context.set_tiles(0);
    return {};
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    Tiling::Range rows = tiling_.range((problem_.rows + rows_at_once_ - 1) / rows_at_once_, begin, end);
    rows = {rows.first * rows_at_once_, std::min(problem_.rows, rows.last * rows_at_once_)};
    CancellationPoll poll(context);
    if (context.outputs[0]->dtype == HEDDLE_F64) {
      multiply_rows(context, rows.first, rows.last, poll);
      if (poll.stopped()) return poll.status();
    }
    with_dtype(context.outputs[0]->dtype, [&](auto tag) { run_rows<typename decltype(tag)::type>(context, rows.first, rows.last, poll); });
    return poll.status();
  }

 private:
  // The products of f64 alone, into y.
  void multiply_rows(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
    StridedProduct<double> product;
    product.rows = last - first;
    product.columns = product.y_row = problem_.columns;
    product.depth = problem_.depth;
    product.a = input<double>(context, 0).data + first * problem_.a.row;
    product.b = input<double>(context, 1).data;
    product.y = output<double>(context, 0).data + first * problem_.columns;
    product.a_row = problem_.a.row;
    product.a_column = problem_.a.column;
    product.b_row = problem_.b.row;
    product.b_column = problem_.b.column;
    multiply_by_panels(product, poll);
  }
  template <class T>
  void run_rows(const RunContext& context, int64_t first, int64_t last, CancellationPoll& poll) const {
    constexpr int64_t stretch = 1 << 16;
    const auto a = input<T>(context, 0), b = input<T>(context, 1), c = input<T>(context, 2);
    const auto y = output<T>(context, 0);
    // Scaling happens in double for floats, in the integer type otherwise (where alpha and beta are whole numbers).
    using Scale = std::conditional_t<std::is_integral_v<T>, T, double>;
    const auto alpha = static_cast<Scale>(attributes_.alpha), beta = static_cast<Scale>(attributes_.beta);
    const int64_t c_row = c.dims.rank == 2 && c.dims[0] != 1 ? c.dims[1] : 0;
    const int64_t c_column = c.dims.rank > 0 && c.dims[-1] != 1 ? 1 : 0;
    for (int64_t i = first; i < last; ++i) {
      for (int64_t j = 0; j < problem_.columns; ++j) {
        Arithmetic<T> sum = 0;
        if constexpr (std::is_same_v<T, double>) {
          sum = y[i * problem_.columns + j];
        } else {
          for (int64_t k = 0; k < problem_.depth; ++k) {
            if (k % stretch == 0 && poll.stops(std::min(stretch, problem_.depth))) return;
            sum = wrapping_add(sum, wrapping_mul(to_arithmetic(a[i * problem_.a.row + k * problem_.a.column]),
                                                 to_arithmetic(b[k * problem_.b.row + j * problem_.b.column])));
          }
        }
        auto value = wrapping_mul(alpha, static_cast<Scale>(sum));
        if (c.data && beta != 0)
          value = wrapping_add(value, wrapping_mul(beta, static_cast<Scale>(to_arithmetic(c[i * c_row + j * c_column]))));
        y[i * problem_.columns + j] = from_arithmetic<T>(value);
      }
    }
  }

  GemmAttributes attributes_;
  MatMulProblem problem_;
  Tiling tiling_;
  int64_t rows_at_once_ = 1;
};

Status gemm_gradient(GradientContext& g) {
  const GradientAttribute alpha = g.same("alpha");
  const int64_t a_turned = g.attributes().i("transA") != 0, b_turned = g.attributes().i("transB") != 0;
  const GradientValue a = g.x(0), b = g.x(1), dy = g.dy(0);
  const auto product = [&](GradientValue left, int64_t left_turned, GradientValue right, int64_t right_turned) {
    return g.emit("Gemm", {left, right}, {alpha, {"transA", left_turned}, {"transB", right_turned}});
  };
  if (g.wants(0)) g.give(0, a_turned ? product(b, b_turned, dy, 1) : product(dy, 0, b, 1 - b_turned));
  if (g.wants(1)) g.give(1, b_turned ? product(dy, 1, a, a_turned) : product(a, 1 - a_turned, dy, 0));
  if (!g.wants(2)) return {};
  const double beta = g.attributes().f("beta");
  const GradientValue scaled = beta == 1 ? dy : pointwise(g, "x0 * " + number_text(beta), {dy});
  g.give(2, sum_to(g, scaled, g.x(2)));
  return {};
}

}  // namespace

void add_gemm(Builder& plugin) {
  const std::vector<heddle_dtype_set> f32(3, dtypes<float>());
  const std::vector<heddle_dtype_set> halves(3, dtypes<f16, bf16>());
  const std::vector<heddle_dtype_set> others(3, gemm_dtypes & ~dtypes<float, f16, bf16>());
  Op op("Gemm", "", 13);
  op.doc("Multiplies two matrices, each transposed if its attribute says so, and adds a tensor that broadcasts to the product.")
      .formula("Y = alpha A' B' + beta C")
      .shapes("A' is [M, K], B' is [K, N]; Y is [M, N]");
  op.in("A", gemm_dtypes).in("B", gemm_dtypes).optional("C", gemm_dtypes).out("Y");
  op.attribute("alpha", 1.0).attribute("beta", 1.0).attribute("transA", 0).attribute("transB", 0);
  op.infer(infer_gemm).cost<gemm_cost>().gradient<gemm_gradient>();
  op.cpu<FusedGemm>(f32).kernel_name("cpu:gemm");
  op.cpu<TiledGemm>(halves).kernel_name("cpu:gemm_float_tiles");
  op.cpu<PlainGemm>(others).kernel_name("cpu:gemm_plain");
  op.example("f32[2,3] = -4 -3 3 -4 3 -3, f32[3,2] = -4 -3 3 -4 3 -3 -> f32[2,2] = 16 15 16 9", "ONNX Runtime")
      .example(
          "f32[3,2] = -4 -3 3 -4 3 -3, f32[2,3] = -4 -3 3 -4 3 -3, f32[2] = 1 -1; alpha=0.5, beta=2.0, transA=1, transB=1 -> f32[2,2] = 10 "
          "6 9.5 2.5",
          "ONNX Runtime")
      .example("i32[1,3] = 1 0 2, i32[3,2] = 1 0 0 1 1 1, i32[1,1] = 3 -> i32[1,2] = 6 5", "the ONNX reference");
  plugin.add(op);
}

}  // namespace heddle::cpu
