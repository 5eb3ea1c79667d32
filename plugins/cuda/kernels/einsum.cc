// Implements Einsum: matrix products by cuBLASLt, other sums by a kernel of this plugin.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generate/operators/einsum_launches.h"
#include "kernels/common/planned_kernel.h"
#include "kernels/common/product_kernel.h"
#include "kernels/kernel_families.h"

namespace heddle::cuda {
namespace {

class SumKernel : public PlannedKernel {
 public:
  Status create(const CreateContext& context) {
    auto launches = std::make_unique<EinsumLaunches>();
    launches->equation = context.attributes.s("equation");
    return begin(context, std::move(launches));
  }
};

class ProductOfTwo : public ProductKernel {
 public:
  Status create(const CreateContext& context) { return begin(context); }
  Status prepare(PrepareContext& context, operators::MatMulProblem problem, bool swapped) {
    swap_inputs(swapped);
    return plan(context, std::move(problem), {});
  }
};

class Einsum {
 public:
  Status create(const CreateContext& context) {
    equation_ = context.attributes.s("equation");
    const bool may_multiply =
        context.input(0) && context.input(1) && !context.input(2) && (HEDDLE_DTYPE_BIT(context.input(0)->dtype) & float_dtypes) != 0;
    if (may_multiply) HEDDLE_PLUGIN_CHECK((product_ = std::make_unique<ProductOfTwo>())->create(context));
    return sum_.create(context);
  }
  Status prepare(PrepareContext& context) {
    operators::MatMulProblem problem;
    bool swapped = false;
    multiplies_ = false;
    if (product_ && is_product(context, &problem, &swapped)) {
      const Status status = product_->prepare(context, std::move(problem), swapped);
      multiplies_ = status.ok();
      // If cuBLASLt has no algorithm, the generated kernel computes the sum.
      if (status.code != HEDDLE_ERROR_UNSUPPORTED) return status;
    }
    return sum_.prepare(context);
  }
  Status run(const RunContext& context, int64_t begin, int64_t end) const {
    return multiplies_ ? product_->run(context, begin, end) : sum_.run(context, begin, end);
  }

 private:
  // With more calls than this, for batches that have no common step, the other kernel's single call is faster (estimated, not measured).
  static constexpr int64_t max_calls = 64;

  bool is_product(PrepareContext& context, operators::MatMulProblem* problem, bool* swapped) const {
    std::vector<operators::Dims> dims;
    for (uint32_t i = 0; i < 2; ++i) {
      if (context.input(i)->extent) return false;
      dims.push_back(operators::dims_of(*context.input(i)));
    }
    operators::SumOfProducts sum;
    if (!operators::make_sum_of_products(equation_, dims, &sum).ok() || !operators::is_matrix_product(sum, problem, swapped)) return false;
    const std::vector<int64_t>& batch = problem->batch;
    return batch.empty() || problem->images() / *std::max_element(batch.begin(), batch.end()) <= max_calls;
  }

  std::string equation_;
  SumKernel sum_;
  std::unique_ptr<ProductOfTwo> product_;  // null: no product, whatever the extents
  bool multiplies_ = false;
};

}  // namespace

void add_einsum(Builder& plugin) {
  plugin.add(Op("Einsum", "", 12).kernels_only().kernel<Einsum>("cuda"));
}

}  // namespace heddle::cuda
