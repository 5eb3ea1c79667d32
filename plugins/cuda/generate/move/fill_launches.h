// Implements ConstantOfShape, EyeLike and Range, whose outputs copy no input (text/fill.cuh).
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/move/move_source.h"

namespace heddle::cuda {

class FillLaunches : public Launches {
 public:
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 protected:
  virtual const char* kernel() const = 0;
  virtual plugin::Status check(const Operands&) const { return {}; }
  virtual void parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const = 0;
  // Returns true if elements are numbers, not bits.
  virtual bool counts() const { return false; }
  virtual uint32_t host_operands() const { return 0; }
  // Returns the number of elements that a thread writes at once.
  virtual int64_t together(const Operands&) const { return 1; }

  bool varies_ = false, wide_ = false;

 private:
  void all_parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const;
};

class ConstantLaunches final : public FillLaunches {
 public:
  uint64_t value = 0;  // the bits of one element

 private:
  const char* kernel() const override { return "fill_value<F>"; }
  plugin::Status check(const Operands& operands) const override;
  void parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  uint32_t host_operands() const override { return 1; }
  int64_t together(const Operands& operands) const override {
    return widest_unit / static_cast<int64_t>(plugin::byte_width(operands.output(0)->dtype));
  }
};

class EyeLaunches final : public FillLaunches {
 public:
  int64_t k = 0;

 private:
  const char* kernel() const override { return "fill_diagonal<F>"; }
  void parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
};

class RangeLaunches final : public FillLaunches {
  const char* kernel() const override { return "fill_range<F>"; }
  plugin::Status check(const Operands& operands) const override;
  void parameters(const Operands& operands, bool for_text, ParameterWriter& writer) const override;
  bool counts() const override { return true; }
  uint32_t host_operands() const override { return 3; }
};

}  // namespace heddle::cuda
