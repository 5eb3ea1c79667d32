// Implements Einsum as launches (text/einsum.cuh).
#pragma once

#include <cstdint>
#include <string>

#include "generate/kernel_text.h"
#include "shared/products/sum_of_products.h"

namespace heddle::cuda {

class EinsumLaunches : public Launches {
 public:
  std::string equation;  // set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 private:
  // The labels as kernels walk them: labels with one position are left out, and neighbouring labels with a common stride in all operands
  // are merged.
  struct Walk {
    int outer = 0, inner = 0;
    int64_t extents[operators::max_einsum_labels] = {};
    int64_t strides[operators::max_einsum_operands][operators::max_einsum_labels] = {};
    int64_t summed = 1, part = 0, parts = 1;
    int labels() const { return outer + inner; }
  };
  plugin::Status look(const Operands& operands, Walk* walk) const;
  void parameters(const Walk& walk, const Operands& operands, ParameterWriter& writer) const;
  void functions(const Operands& operands, KernelText* text) const;

  operators::EquationLabels labels_;
  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE;
  bool varies_ = false, blocks_ = false, divided_ = false;
};

}  // namespace heddle::cuda
