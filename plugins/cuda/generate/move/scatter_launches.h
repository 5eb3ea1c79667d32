// ScatterElements and ScatterND as launches: the copy of the data, and the updates (text/scatter.cuh). Updates of the same element take
// effect in their order, whatever the grid: either one thread goes through all that may coincide, or they are first sorted by their target.
// An update whose index is out of range, which the host refuses, is left out.
#pragma once

#include <cstdint>
#include <string>

#include "generate/launch_plan.h"
#include "generate/move/move_source.h"
#include "shared/movement/scatter_reduction.h"

namespace heddle::cuda {

class ScatterLaunches : public Launches {
 public:
  operators::ScatterReduction reduction = operators::ScatterReduction::none;  // set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 protected:
  struct Numbers {
    int64_t count = 0, slice = 1, stride = 0, run = 0, lines = 0;
    uint64_t from = 0, to = 0;
  };
  virtual plugin::Status look(const Operands& operands, Numbers* numbers) const = 0;
  // Returns true if threads go through lines.
  virtual bool by_lines(const Operands&, const Numbers&) const { return false; }
  virtual void parameters(const Operands& operands, const Numbers& numbers, ParameterWriter& writer) const = 0;
  virtual void functions(const Operands& operands, KernelText* text) const = 0;

  bool wide_ = false, lines_ = false;

 private:
  void all_parameters(const Operands& operands, const Numbers& numbers, ParameterWriter& writer) const;
  // Divides the updates into blocks, each of which is sorted.
  void divide(Numbers* numbers) const { numbers->stride = blocks_of(numbers->count, entries_) * entries_; }
  int64_t entry_bytes() const { return wide_ ? 16 : 8; }

  int64_t entries_ = 0;
};

class ScatterElementsLaunches final : public ScatterLaunches {
 public:
  int64_t axis = 0;

 private:
  plugin::Status look(const Operands& operands, Numbers* numbers) const override;
  bool by_lines(const Operands& operands, const Numbers& numbers) const override;
  void parameters(const Operands& operands, const Numbers& numbers, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
};

class ScatterNDLaunches final : public ScatterLaunches {
  plugin::Status look(const Operands& operands, Numbers* numbers) const override;
  void parameters(const Operands& operands, const Numbers& numbers, ParameterWriter& writer) const override;
  void functions(const Operands& operands, KernelText* text) const override;
};

}  // namespace heddle::cuda
