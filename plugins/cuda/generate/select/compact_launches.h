// Implements Compress and NonZero, whose extents depend on data (text/compact.cuh). Outputs are planned at their bound and written
// compactly, and their true extent is written to the extent's slot, on the device.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/move/move_source.h"

namespace heddle::cuda {

class CompactLaunches : public Launches {
 public:
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 protected:
  // The offsets in scratch of the parts' counts and of the places of all positions.
  struct Scratch {
    uint64_t counts = 0, places = 0;
  };
  // Returns the number of positions that are examined.
  virtual int64_t positions(const Operands& operands) const = 0;
  virtual bool keeps_places() const { return false; }
  virtual void describe(const Operands& operands, KernelText* text) = 0;
  virtual void parameters(const Operands& operands, const Scratch& scratch, ParameterWriter& writer) const = 0;
  // Returns the work of a kernel after the three that count; 0 if there is none.
  virtual int64_t units(const Operands&) const { return 0; }

  bool wide_ = false;

 private:
  void all_parameters(const Operands& operands, const Scratch& scratch, ParameterWriter& writer) const;
};

class NonZeroLaunches final : public CompactLaunches {
  int64_t positions(const Operands& operands) const override { return operands.input(0)->element_count; }
  void describe(const Operands& operands, KernelText* text) override;
  void parameters(const Operands& operands, const Scratch& scratch, ParameterWriter& writer) const override;
};

class CompressLaunches final : public CompactLaunches {
 public:
  bool flat = true;  // there is no axis
  int64_t axis = 0;

 private:
  struct Numbers {
    int64_t whole = 0, row = 0, units = 0;  // positions along the axis; units of a row, and of all that may be moved
  };
  Numbers look(const Operands& operands) const;
  int64_t positions(const Operands& operands) const override { return operands.input(1)->element_count; }
  bool keeps_places() const override { return true; }
  void describe(const Operands& operands, KernelText* text) override;
  void parameters(const Operands& operands, const Scratch& scratch, ParameterWriter& writer) const override;
  int64_t units(const Operands& operands) const override { return look(operands).units; }

  int64_t unit_ = 1;
};

}  // namespace heddle::cuda
