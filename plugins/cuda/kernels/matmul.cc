// Implements MatMul and Gemm.
#include <string>

#include "kernels/common/product_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

using operators::dims_of;
using operators::MatMulProblem;

constexpr heddle_dtype_set product_dtypes = dtypes<f16, bf16, float, double>();

class MatMul : public ProductKernel {
 public:
  Status create(const CreateContext& context) { return begin(context); }
  Status prepare(PrepareContext& context) {
    MatMulProblem problem;
    std::vector<int64_t> dims;
    HEDDLE_PLUGIN_CHECK(operators::resolve_matmul(dims_of(*context.input(0)), dims_of(*context.input(1)), &problem, &dims));
    return plan(context, std::move(problem), fused());
  }
  static bool accepts_epilogue(const CreateContext& context) {
    const heddle_type *a = context.input(0), *b = context.input(1);
    // The last dimension of y is the matrix's columns only if b has columns.
    return a && b && a->rank >= 2 && b->rank >= 2 && ProductKernel::accepts_epilogue(context);
  }
};

class Gemm : public ProductKernel {
 public:
  Status create(const CreateContext& context) {
    alpha_ = context.attributes.f("alpha", 1);
    beta_ = context.attributes.f("beta", 1);
    transpose_a_ = context.attributes.i("transA") != 0;
    transpose_b_ = context.attributes.i("transB") != 0;
    HEDDLE_PLUGIN_CHECK(begin(context));
    has_c_ = context.input(2) != nullptr && beta_ != 0;
    // Operands of epilogue ops follow the schema's three inputs; without C, input 2 may be one of them.
    for (const EpilogueOp& epilogue_op : fused()) has_c_ = has_c_ && epilogue_op.input != 2;
    return {};
  }
  Status prepare(PrepareContext& context) {
    MatMulProblem problem;
    HEDDLE_PLUGIN_CHECK(
        operators::resolve_gemm(transpose_a_, transpose_b_, dims_of(*context.input(0)), dims_of(*context.input(1)), &problem));
    std::vector<EpilogueOp> epilogue_ops;
    int32_t matrix = -1;
    // cuBLASLt takes a row as a bias. If nothing is multiplied, only C is left.
    if (has_c_ && (problem.depth == 0 || (beta_ == 1 && is_row(*context.input(2), problem))))
      epilogue_ops.push_back({text_of_c(), 2, is_row(*context.input(2), problem) ? HEDDLE_OPERAND_LAST_DIMENSION : HEDDLE_OPERAND_NONE});
    else if (has_c_)
      matrix = 2;
    epilogue_ops.insert(epilogue_ops.end(), fused().begin(), fused().end());
    return plan(context, std::move(problem), epilogue_ops, alpha_, matrix, matrix < 0 ? 0 : beta_);
  }

 private:
  static bool is_row(const heddle_tensor& c, const MatMulProblem& problem) {
    return c.rank > 0 && c.dims[c.rank - 1] == problem.columns && c.element_count == problem.columns;
  }
  std::string text_of_c() const {
    if (beta_ == 1) return "add(acc, operand)";
    return "add(acc, mul(operand, " + expression::detail::print_number(beta_) + "))";
  }

  double alpha_ = 1, beta_ = 1;
  bool transpose_a_ = false, transpose_b_ = false, has_c_ = false;
};

}  // namespace

void add_matmul(Builder& plugin) {
  plugin.resource<ProductLibrary>(ProductLibrary::resource, HEDDLE_SCOPE_DEVICE, 1, "cuda");
  plugin.add(
      Op("MatMul", "", 13).kernels_only().kernel<MatMul>("cuda", {product_dtypes, product_dtypes}).kernel_name("cuda:cublaslt_matmul"));
  plugin.add(Op("Gemm", "", 13)
                 .kernels_only()
                 .kernel<Gemm>("cuda", {product_dtypes, product_dtypes, product_dtypes})
                 .kernel_name("cuda:cublaslt_gemm"));
}

}  // namespace heddle::cuda
