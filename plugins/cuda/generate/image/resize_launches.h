// Implements Resize as launches (text/resize.cuh): one that picks elements, or one that fills tables of weights and one that sums by them.
#pragma once

#include <cstdint>

#include "generate/kernel_text.h"
#include "shared/image/resize_node.h"

namespace heddle::cuda {

class ResizeLaunches : public Launches {
 public:
  operators::ResizeNode node;  // set before choose()

  plugin::Status choose(const Operands& operands, bool varies, KernelSource* source) final;
  plugin::Status plan(const Operands& operands, LaunchPlan* plan) const final;
  bool varies() const final { return varies_; }

 private:
  // The axes as kernels walk them.
  struct Walk {
    int rank = 0;
    using Numbers = int64_t[HEDDLE_MAX_RANK];
    Numbers input = {}, output = {}, stride = {}, taps = {}, entries = {}, roi_entries = {};
    double scale[HEDDLE_MAX_RANK] = {};
    int64_t block = 1, roi_axes = 0;
    int64_t places = 0, weights = 0;  // entries in the tables

    void put_in_front(const operators::ResizeAxis& axis, int64_t tap_count);
    // Adds axes up to a rank that a source was made for.
    void fill_up(int to_rank) {
      while (rank < to_rank) put_in_front({}, 0);
    }
  };
  plugin::Status look(const Operands& operands, Walk* walk) const;
  void walk_axes(const operators::ResizeAxis* axes, const heddle_tensor& x, Walk* walk) const;
  void parameters(const Walk& walk, int64_t count, uint64_t weights, uint64_t positions, ParameterWriter& writer) const;
  void members(const Walk& walk, KernelText* text) const;
  bool crops() const { return node.options.coordinates == operators::Coordinates::tf_crop_and_resize; }
  bool is_nearest() const { return node.options.interpolation == operators::Interpolation::nearest; }
  uint64_t take_tables(int64_t weights, LaunchPlan* plan, uint64_t* positions) const;

  heddle_dtype dtype_ = HEDDLE_DTYPE_NONE, roi_dtype_ = HEDDLE_DTYPE_NONE;
  int rank_ = 0;         // rank that the source walks
  uint32_t picked_ = 0;  // number of the kernel that picks
  bool varies_ = false, wide_ = false;
};

}  // namespace heddle::cuda
