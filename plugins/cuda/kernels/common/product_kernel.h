// The common part of MatMul and Gemm: matrix products by cuBLASLt with their epilogues.
//
// A sum with a matrix of the output's shape, a bias along its columns, and ReLU or GELU (by tanh) are done by cuBLASLt; the rest of the
// epilogue is one launch over the output. Batches that have no common step take several calls; if those would be too many, the matrices
// that are repeated in them are copied to scratch, each as often as it is read.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kernels/common/epilogue_kernel.h"
#include "kernels/common/gpu_kernel.h"
#include "kernels/common/pointwise_launch.h"
#include "library/matrix_product.h"
#include "shared/products/matmul_problem.h"

namespace heddle::cuda {

class ProductKernel : public GpuKernel {
 public:
  Status run(const RunContext& context, int64_t, int64_t) const;
  static bool accepts_epilogue(const CreateContext& context);

 protected:
  // Called in create.
  Status begin(const CreateContext& context);
  // Called in prepare: plans activation(alpha a b + beta c), followed by `epilogue_ops`. `c` is an input that broadcasts to the output; -1:
  // none. If its shape is not the output's it is first expanded over the output, so that the sum is rounded once.
  Status plan(PrepareContext& context, operators::MatMulProblem problem, const std::vector<EpilogueOp>& epilogue_ops, double alpha = 1,
              int32_t c = -1, double beta = 0);
  const std::vector<EpilogueOp>& fused() const { return fused_; }
  // Must be called before plan(): input 1 is the matrix on the left.
  void swap_inputs(bool swapped) { swapped_ = swapped; }

 private:
  // Element offsets of the beginnings of a, b and y.
  struct Part {
    int64_t a = 0, b = 0, y = 0;
  };
  size_t absorb(const std::vector<EpilogueOp>& epilogue_ops, ProductShape* shape);
  Status prepare_spread(const heddle_tensor& c, const heddle_tensor& y);
  Status divide(const operators::MatMulProblem& problem, ProductShape* shape);
  Status lay_out(heddle_dtype dtype, uint64_t budget, operators::MatMulProblem* problem);

  std::vector<EpilogueOp> fused_;
  Needed<ProductLibrary> library_;
  MatrixProduct product_;
  EpilogueKernel epilogue_kernel_;
  PointwiseLaunch spread_;  // expands c
  // The copies of a and b in the scratch, before the workspace.
  struct Copy {
    bool is_made = false;
    uint64_t offset = 0;
    PointwiseLaunch launch;
  };
  std::array<Copy, 2> copies_;
  uint64_t copied_bytes_ = 0;
  std::vector<Part> parts_;  // empty: no products, the output is zeros
  double alpha_ = 1, beta_ = 0;
  int32_t c_ = -1, bias_ = -1;
  bool swapped_ = false, spreads_c_ = false;
};

}  // namespace heddle::cuda
