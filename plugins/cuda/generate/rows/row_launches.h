// Implements softmaxes and normalisations as launches: rows held in registers, or reductions first and elements then.
#pragma once

#include <cstdint>

#include "generate/launch_plan.h"
#include "generate/reduce/reduce_pass.h"
#include "generate/rows/row_elements.h"
#include "generate/rows/row_source.h"
#include "heddle/op.h"

namespace heddle::cuda {

// A view of a node's input: as a tensor whose rows are the elements of the dimensions in `set`.
struct RowView {
  heddle_tensor x;
  int64_t dims[HEDDLE_MAX_RANK];
  uint32_t set = 0;
  int64_t scale_repeat = 1, bias_repeat = 1, groups = 1, channels = 1, spatial = 1;  // as in RowNumbers
};

class RowLaunches : public Launches {
 public:
  RowShape shape;  // all but its geometry and dtypes; set before choose()
  double epsilon = 0;

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;

 protected:
  // Computes the view of the input of a run, and, if `shape` is given (in choose), how parameters are read for it. `view.x` is the input
  // itself, unless changed.
  virtual plugin::Status see(const Operands& operands, RowView* view, RowShape* shape) const = 0;

 private:
  plugin::Status look(const Operands& operands, RowView* view, RowShape* shape) const;
  ReducePasses known_;  // for rows that are not held
  RowElements elements_;
};

// Rows along one axis: Softmax, LogSoftmax, Hardmax, LpNormalization.
class AxisLaunches : public RowLaunches {
 public:
  int64_t axis = -1;

 private:
  plugin::Status see(const Operands& operands, RowView* view, RowShape* shape) const final;
};

// Rows over any axes: MeanVarianceNormalization.
class AxesLaunches : public RowLaunches {
 public:
  std::vector<int64_t> axes;

 private:
  plugin::Status see(const Operands& operands, RowView* view, RowShape* shape) const final;
};

// Rows from an axis on, with parameters of the trailing dimensions: LayerNormalization, RMSNormalization.
class TrailingLaunches : public RowLaunches {
 public:
  int64_t axis = -1;

 private:
  plugin::Status see(const Operands& operands, RowView* view, RowShape* shape) const final;
};

// Rows that are groups of channels: GroupNormalization; without groups each channel is one: InstanceNormalization.
class GroupLaunches : public RowLaunches {
 public:
  int64_t groups = 0;

 private:
  plugin::Status see(const Operands& operands, RowView* view, RowShape* shape) const final;
};

}  // namespace heddle::cuda
