// Implements operators that copy one box of elements between two sets of strides (shared/movement/box.h), of which the target's are dense:
// Transpose, Reorder, Slice, Expand, Tile, DepthToSpace and SpaceToDepth. Two dimensions that change places go through shared memory in
// squares (text/move.cuh).
#pragma once

#include <cstdint>
#include <vector>

#include "generate/launch_plan.h"
#include "shared/movement/box.h"

namespace heddle::cuda {

class BoxLaunches : public Launches {
 public:
  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 protected:
  // Computes the box of these operands, whose content is readable; the box of a run is checked.
  virtual plugin::Status box(const Operands& operands, operators::Box* box) const = 0;
  // Returns the largest number of dimensions that the box can have.
  virtual int max_dimensions(const Operands& operands) const { return operands.output(0)->rank; }

 private:
  // The box in units, without empty dimensions; for tiles its last two dimensions are rows and columns.
  struct Units {
    operators::Box box;
    int64_t unit = 1, first = 0;
    bool tiled = false;
  };
  plugin::Status look(const Operands& operands, Units* units) const;
  void parameters(const Units& units, ParameterWriter& writer, int64_t* blocks) const;

  bool varies_ = false, wide_ = false, tiled_ = false;
  int64_t unit_ = 1;
  int rank_ = 1;
};

class TransposeLaunches final : public BoxLaunches {
 public:
  std::vector<int> order;

 private:
  plugin::Status box(const Operands& operands, operators::Box* box) const override;
};

class ReorderLaunches final : public BoxLaunches {
  plugin::Status box(const Operands& operands, operators::Box* box) const override;
};

class SliceLaunches final : public BoxLaunches {
  plugin::Status box(const Operands& operands, operators::Box* box) const override;
};

// Implements Expand and Tile.
class RepeatLaunches final : public BoxLaunches {
 public:
  bool tile = false;

 private:
  plugin::Status box(const Operands& operands, operators::Box* box) const override;
  int max_dimensions(const Operands& operands) const override { return 2 * operands.output(0)->rank; }
};

class BlocksLaunches final : public BoxLaunches {
 public:
  bool to_space = false, channel_first = false;
  int64_t block = 1;

 private:
  plugin::Status box(const Operands& operands, operators::Box* box) const override;
  int max_dimensions(const Operands&) const override { return 6; }
};

}  // namespace heddle::cuda
